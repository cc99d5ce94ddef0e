// Sum over all elements.
#include "core/backend/cpu/total.h"

#include <algorithm>
#include <array>

#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {

constexpr std::size_t block = 16384;

TRIREME_SIMD double sum_range(const float* x, std::size_t count) {
  std::array<double, 16> partial{};
  std::size_t i = 0;
  for (; i + partial.size() <= count; i += partial.size()) {
    for (std::size_t k = 0; k < partial.size(); ++k) partial[k] += x[i + k];
  }
  double sum = 0;
  for (; i < count; ++i) sum += x[i];
  for (const double part : partial) sum += part;
  return sum;
}

}  // namespace

double total(const Tensor& x, tensor::Arena& scratch) {
  const std::size_t elements = count(x), blocks = (elements + block - 1) / block;
  auto* partial = static_cast<double*>(scratch.allocate(blocks * sizeof(double)));
  parallel_for(blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      partial[b] = sum_range(x.as<float>() + b * block, std::min(block, elements - b * block));
    }
  });
  double sum = 0;
  for (std::size_t b = 0; b < blocks; ++b) sum += partial[b];
  return sum;
}

void fill_all(const Tensor& tensor, float value) {
  parallel_for(count(tensor), grain, [&](std::size_t begin, std::size_t end) {
    std::fill(tensor.as<float>() + begin, tensor.as<float>() + end, value);
  });
}

}  // namespace trireme::backend
