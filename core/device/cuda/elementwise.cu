// add_f64, scale, fill, random: grid-stride; 16 bytes a thread where alignment allows. Every kernel writes all of
// `into` or `values`.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"
#include "core/device/random_math.h"

namespace trireme::device::cuda {
namespace {

__global__ void add_f64_kernel(double* into, const double* left, const double* right, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    into[i] = left[i] + right[i];
  }
}

// values = values · factor, or = value where `set`. Wide: groups of four; the last few by the first threads.
template <bool Wide, bool Set>
__global__ void scale_kernel(float* values, float factor, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::size_t begin = first;
  if constexpr (Wide) {
    const std::size_t groups = count / 4;
    for (std::size_t i = first; i < groups; i += stride) {
      auto* const at = reinterpret_cast<float4*>(values) + i;
      const float4 old = Set ? float4{1.0f, 1.0f, 1.0f, 1.0f} : *at;
      *at = Set ? float4{factor, factor, factor, factor}
                : float4{old.x * factor, old.y * factor, old.z * factor, old.w * factor};
    }
    begin = 4 * groups + first;
  }
  for (std::size_t i = begin; i < count; i += stride) values[i] = Set ? factor : values[i] * factor;
}

__global__ void random_kernel(RandomFill fill) {
  const RandomKey key = op_key(*fill.block, fill.ordinal);
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < fill.count; i += stride) {
    random_element(fill, key, i);
  }
}

__global__ void seed_kernel(void* gradient, Dtype dtype, const StepBlock* block, double n) {
  write_seed(gradient, dtype, block, n);
}

template <bool Set>
void scale_or_set(const char* name, std::span<float> values, float factor, Stream& stream) {
  if (values.empty()) return;
  const bool wide = aligned16(values.data());
  launch(name, wide ? scale_kernel<true, Set> : scale_kernel<false, Set>,
         blocks_for(values.size(), (wide ? 4 : 1) * threads_per_block), threads_per_block, stream, values.data(),
         factor, values.size());
}

}  // namespace

void add_f64(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream& stream) {
  check_sizes("add_f64", into.size(), left.size(), right.size());
  if (into.empty()) return;
  launch("add_f64", add_f64_kernel, blocks_for(into.size()), threads_per_block, stream, into.data(), left.data(),
         right.data(), into.size());
}

void scale(std::span<float> values, float factor, Stream& stream) {
  scale_or_set<false>("scale", values, factor, stream);
}

void fill(std::span<float> values, float value, Stream& stream) { scale_or_set<true>("fill", values, value, stream); }

void seed(void* gradient, Dtype dtype, const StepBlock* block, double n, Stream& stream) {
  launch("seed", seed_kernel, 1, 1, stream, gradient, dtype, block, n);
}

void random(const RandomFill& fill, Stream& stream) {
  if (fill.count == 0) return;
  launch("random", random_kernel, blocks_for(fill.count), threads_per_block, stream, fill);
}

}  // namespace trireme::device::cuda
