// add, scale, fill: one element a thread, grid-stride. Every kernel writes all of `into` or `values`.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::device::cuda {
namespace {

template <class T>
__global__ void add_kernel(T* into, const T* left, const T* right, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    into[i] = left[i] + right[i];
  }
}

__global__ void scale_kernel(float* values, float factor, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    values[i] *= factor;
  }
}

__global__ void fill_kernel(float* values, float value, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) values[i] = value;
}

}  // namespace

void add(std::span<float> into, std::span<const float> left, std::span<const float> right, std::span<double> squares,
         Stream& stream) {
  if (into.empty()) return;
  launch("add", add_kernel<float>, blocks_for(into.size()), threads_per_block, stream, into.data(), left.data(),
         right.data(), into.size());
  if (!squares.empty()) tile_squares(into, squares, stream);
}

void add_f64(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream& stream) {
  if (into.empty()) return;
  launch("add_f64", add_kernel<double>, blocks_for(into.size()), threads_per_block, stream, into.data(), left.data(),
         right.data(), into.size());
}

void scale(std::span<float> values, float factor, Stream& stream) {
  if (values.empty()) return;
  launch("scale", scale_kernel, blocks_for(values.size()), threads_per_block, stream, values.data(), factor,
         values.size());
}

void fill(std::span<float> values, float value, Stream& stream) {
  if (values.empty()) return;
  launch("fill", fill_kernel, blocks_for(values.size()), threads_per_block, stream, values.data(), value,
         values.size());
}

}  // namespace trireme::device::cuda
