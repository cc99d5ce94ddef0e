// mul: b as a, or a row of a's columns.
#include "core/backend/cuda/columns.h"
#include "core/backend/cuda/launch.h"

namespace trireme::backend::cuda {
namespace {
namespace mul {

template <bool Wide>
__global__ void mul_kernel(const float* a, const float* b, float* y, std::size_t count) {
  for_each_group<Wide>(
      count,
      [&](std::size_t g) {
        const float4 u = reinterpret_cast<const float4*>(a)[g], v = reinterpret_cast<const float4*>(b)[g];
        reinterpret_cast<float4*>(y)[g] = float4{u.x * v.x, u.y * v.y, u.z * v.z, u.w * v.w};
      },
      [&](std::size_t i) { y[i] = a[i] * b[i]; });
}

__global__ void mul_row_kernel(const float* a, const float* row, float* y, std::size_t count, std::size_t columns) {
  for_each_element(count, [&](std::size_t i) { y[i] = a[i] * row[i % columns]; });
}

// y = a · b, b being one row for all rows of a where it is smaller; a without data: zeros.
void product(const Tensor& a, const Tensor& b, const Tensor& y, device::Stream& stream) {
  const std::size_t size = count(y);
  if (size == 0) return;
  if (!a) return copy_elements(a, y, stream);
  if (b.elements() == y.elements()) {
    const bool wide = aligned16(a.as<float>(), b.as<float>(), y.as<float>());
    launch("mul", wide ? mul_kernel<true> : mul_kernel<false>, blocks_for_groups(size, wide), threads_per_block, stream,
           a.as<float>(), b.as<float>(), y.as<float>(), size);
    return;
  }
  launch("mul row", mul_row_kernel, blocks_for(size), threads_per_block, stream, a.as<float>(), b.as<float>(),
         y.as<float>(), size, count(b));
}

void forward(const Forward& f) { product(f.in[0], f.in[1], f.out[0], f.stream); }

void backward(const Backward& b) {
  const Tensor dy = tensor_or_none(b.out_grads, 0), da = tensor_or_none(b.in_grads, 0),
               db = tensor_or_none(b.in_grads, 1);
  if (da) product(dy, b.in[1], da, b.stream);
  if (!db) return;
  if (b.in[0].shape == b.in[1].shape) {
    product(dy, b.in[0], db, b.stream);
  } else {
    column_sums(dy.as<float>(), b.in[0].as<float>(), rows_of(b.in[0]), columns_of(b.in[0]), db.as<float>(), b.scratch,
                b.stream);
  }
}

}  // namespace mul
}  // namespace

OpKernels mul_kernels() { return {mul::forward, mul::backward}; }

}  // namespace trireme::backend::cuda
