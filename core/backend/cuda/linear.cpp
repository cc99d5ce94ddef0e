// linear: three matrix products; bias and relu ride on the first. y and all gradients are written, never added to.
#include "core/backend/cuda/columns.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/product.h"

namespace trireme::backend::cuda {
namespace {
namespace linear {

template <bool Tf32>
void forward(const Forward& f) {
  const Tensor &x = f.in[0], &weight = f.in[1];
  multiply({.a = x.as<float>(),
            .a_transposed = false,
            .b = weight.as<float>(),
            .b_transposed = true,
            .bias = tensor_or_none(f.in, 2).as<float>(),
            .relu = f.attributes.flag("relu"),
            .c = f.out[0].as<float>(),
            .m = static_cast<std::int64_t>(rows_of(x)),
            .n = weight.shape[0],
            .k = weight.shape[1],
            .tf32 = Tf32},
           f.stream);
}

template <bool Tf32>
void backward(const Backward& b) {
  const Tensor &x = b.in[0], &weight = b.in[1], &y = b.out[0];
  const Tensor dy = tensor_or_none(b.out_grads, 0);
  const Tensor dx = tensor_or_none(b.in_grads, 0), dweight = tensor_or_none(b.in_grads, 1);
  const Tensor dbias = tensor_or_none(b.in_grads, 2);
  const std::size_t rows = rows_of(x), out = columns_of(y);
  if (!dy) {  // no gradient came
    for (const Tensor& gradient : {dx, dweight, dbias})
      if (gradient) copy_elements(dy, gradient, b.stream);
    return;
  }
  const float* dz = dy.as<float>();  // (rows, out), the gradient before the relu
  if (b.attributes.flag("relu")) {
    const Tensor masked = b.scratch.allocate(y.shape, Dtype::f32);
    relu_gradient(dz, y.as<float>(), masked.as<float>(), rows, out, dbias.as<float>(), b.scratch, b.stream);
    dz = masked.as<float>();
  } else if (dbias) {
    column_sums(dz, nullptr, rows, out, dbias.as<float>(), b.scratch, b.stream);
  }
  const auto m = static_cast<std::int64_t>(rows);
  if (dweight) {  // (out, in) = dzᵀ · x
    multiply({.a = dz,
              .a_transposed = true,
              .b = x.as<float>(),
              .b_transposed = false,
              .bias = nullptr,
              .relu = false,
              .c = dweight.as<float>(),
              .m = weight.shape[0],
              .n = weight.shape[1],
              .k = m,
              .tf32 = Tf32},
             b.stream);
  }
  if (dx) {  // (rows, in) = dz · weight
    multiply({.a = dz,
              .a_transposed = false,
              .b = weight.as<float>(),
              .b_transposed = false,
              .bias = nullptr,
              .relu = false,
              .c = dx.as<float>(),
              .m = m,
              .n = weight.shape[1],
              .k = weight.shape[0],
              .tf32 = Tf32},
             b.stream);
  }
}

}  // namespace linear
}  // namespace

OpKernels linear_kernels(bool tf32) {
  return tf32 ? OpKernels{linear::forward<true>, linear::backward<true>}
              : OpKernels{linear::forward<false>, linear::backward<false>};
}

}  // namespace trireme::backend::cuda
