// accuracy: a row is right where no earlier logit reaches the label's and no later one exceeds it.
#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/labels.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace accuracy {

// How many logits stand against the label; NaN does.
TRIREME_SIMD std::uint32_t rivals(const float* x, std::size_t classes, std::size_t label) {
  const float own = x[label];
  std::uint32_t against = 0;
  for (std::size_t c = 0; c < label; ++c) against += x[c] < own ? 0u : 1u;
  for (std::size_t c = label; c < classes; ++c) against += x[c] <= own ? 0u : 1u;
  return against;
}

void forward(const Forward& f) {
  const Tensor& logits = f.in[0];
  const std::size_t classes = columns_of(logits), rows = rows_of(logits);
  const std::int64_t ignored = f.attributes.integer("ignore_index");
  const auto labels = checked_labels("accuracy", f.in[1], logits.shape[-1], ignored, f.scratch);
  auto* right = static_cast<std::uint8_t*>(f.scratch.allocate(rows));
  parallel_for(rows, std::max<std::size_t>(1, grain / classes), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float* x = logits.as<float>() + i * classes;
      right[i] = labels[i] != ignored && rivals(x, classes, static_cast<std::size_t>(labels[i])) == 0 ? 1 : 0;
    }
  });
  double sum = 0, weight = 0;
  for (std::size_t i = 0; i < rows; ++i) sum += right[i], weight += labels[i] != ignored ? 1 : 0;
  *f.out[0].as<double>() = sum;
  *f.out[1].as<double>() = weight;
}

}  // namespace accuracy
}  // namespace

OpKernels accuracy_kernels() { return {accuracy::forward, nullptr}; }

}  // namespace trireme::backend
