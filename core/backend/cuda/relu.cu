// relu. Forward writes y = x where x ≥ 0, else 0; NaN stays NaN. Backward writes dx = dy where y > 0, else 0 (NaN in y
// passes dy, as on the CPU).
#include "core/backend/cuda/columns.h"
#include "core/backend/cuda/launch.h"

namespace trireme::backend::cuda {
namespace {
namespace relu {

__device__ float relu_of(float x) { return x < 0.0f ? 0.0f : x; }

template <bool Wide>
__global__ void relu_kernel(const float* x, float* y, std::size_t count) {
  for_each_group<Wide>(
      count,
      [&](std::size_t g) {
        const float4 v = reinterpret_cast<const float4*>(x)[g];
        reinterpret_cast<float4*>(y)[g] = float4{relu_of(v.x), relu_of(v.y), relu_of(v.z), relu_of(v.w)};
      },
      [&](std::size_t i) { y[i] = relu_of(x[i]); });
}

void forward(const Forward& f) { apply_relu(f.in[0].as<float>(), f.out[0].as<float>(), count(f.out[0]), f.stream); }

void backward(const Backward& b) {
  const Tensor dx = tensor_or_none(b.in_grads, 0);
  if (!dx) return;
  relu_gradient(tensor_or_none(b.out_grads, 0).as<float>(), b.out[0].as<float>(), dx.as<float>(), 1, count(b.out[0]),
                nullptr, b.scratch, b.stream);
}

}  // namespace relu
}  // namespace

void apply_relu(const float* x, float* y, std::size_t count, device::Stream& stream) {
  if (count == 0) return;
  const bool wide = aligned16(x, y);
  launch("relu", wide ? relu::relu_kernel<true> : relu::relu_kernel<false>, blocks_for_groups(count, wide),
         threads_per_block, stream, x, y, count);
}

OpKernels relu_kernels() { return {relu::forward, relu::backward}; }

}  // namespace trireme::backend::cuda
