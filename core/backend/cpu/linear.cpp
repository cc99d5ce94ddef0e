// linear: three matrix products. y and all gradients are written, never added to.
#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn.h"

namespace trireme::backend {
namespace {
namespace linear {

void forward(const Forward& f) {
  const Tensor &x = f.in[0], &weight = f.in[1], &y = f.out[0];
  const auto rows = static_cast<std::int64_t>(rows_of(x));
  multiply({.a = x.as<float>(),
            .a_transposed = false,
            .b = weight.as<float>(),
            .b_transposed = true,
            .bias = tensor_or_none(f.in, 2).as<float>(),
            .c = y.as<float>(),
            .m = rows,
            .n = weight.shape[0],
            .k = weight.shape[1]},
           f.scratch);
  if (f.attributes.flag("relu")) relu_in_place(y.span<float>());
}

void backward(const Backward& b) {
  const Tensor &x = b.in[0], &weight = b.in[1], &y = b.out[0], &dy = b.out_grads[0];
  const Tensor dx = tensor_or_none(b.in_grads, 0), dweight = tensor_or_none(b.in_grads, 1);
  const Tensor dbias = tensor_or_none(b.in_grads, 2);
  const std::size_t rows = rows_of(x), out = columns_of(y);
  const float* dz = dy.as<float>();  // (rows, out), the gradient before the relu
  if (b.attributes.flag("relu")) {
    const Tensor masked = b.scratch.allocate(y.shape, Dtype::f32);
    relu_gradient(dz, y.as<float>(), masked.as<float>(), rows, out, dbias.as<float>(), b.scratch);
    dz = masked.as<float>();
  } else if (dbias) {
    column_sums(dz, rows, out, dbias.as<float>(), b.scratch);
  }
  const auto m = static_cast<std::int64_t>(rows);
  if (dweight) {  // (out, in) = dzᵀ · x
    multiply({.a = dz,
              .a_transposed = true,
              .b = x.as<float>(),
              .b_transposed = false,
              .bias = nullptr,
              .c = dweight.as<float>(),
              .m = weight.shape[0],
              .n = weight.shape[1],
              .k = m},
             b.scratch);
  }
  if (dx) {  // (rows, in) = dz · weight
    multiply({.a = dz,
              .a_transposed = false,
              .b = weight.as<float>(),
              .b_transposed = false,
              .bias = nullptr,
              .c = dx.as<float>(),
              .m = m,
              .n = weight.shape[1],
              .k = weight.shape[0]},
             b.scratch);
  }
}

}  // namespace linear
}  // namespace

OpKernels linear_kernels() { return {linear::forward, linear::backward}; }

}  // namespace trireme::backend
