// relu. Forward writes y = x where x ≥ 0, else 0; NaN stays NaN. Backward writes dx = dy where y > 0, else 0.
#include "core/backend/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::backend::cuda {
namespace {

using device::cuda::blocks_for;
using device::cuda::launch;
using device::cuda::threads_per_block;

__global__ void relu_kernel(const float* x, float* y, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] = x[i] < 0.0f ? 0.0f : x[i];
  }
}

// dy null: no gradient came, which counts as zero.
__global__ void relu_gradient_kernel(const float* dy, const float* y, float* dx, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    dx[i] = dy != nullptr && y[i] > 0.0f ? dy[i] : 0.0f;
  }
}

void forward(const ops::Forward& f) {
  const auto count = static_cast<std::size_t>(f.out[0].elements());
  if (count == 0) return;
  launch("relu", relu_kernel, blocks_for(count), threads_per_block, f.stream, f.in[0].as<float>(), f.out[0].as<float>(),
         count);
}

void backward(const ops::Backward& b) {
  const auto count = static_cast<std::size_t>(b.out[0].elements());
  if (count == 0 || b.in_grads.empty() || !b.in_grads[0]) return;
  const float* const dy = b.out_grads.empty() ? nullptr : b.out_grads[0].as<float>();
  launch("relu gradient", relu_gradient_kernel, blocks_for(count), threads_per_block, b.stream, dy,
         b.out[0].as<float>(), b.in_grads[0].as<float>(), count);
}

}  // namespace

ops::OpKernels relu_kernels() { return {forward, backward}; }

}  // namespace trireme::backend::cuda
