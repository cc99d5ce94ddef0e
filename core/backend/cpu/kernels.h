// The kernels of each op on the CPU, and small things they share.
#pragma once

#include <cstddef>
#include <span>

#include "core/ops/op.h"

namespace trireme::backend {

using ops::Backward;
using ops::Forward;
using ops::OpKernels;
using tensor::Tensor;

[[nodiscard]] OpKernels accuracy_kernels();
[[nodiscard]] OpKernels add_kernels();
[[nodiscard]] OpKernels avg_pool2d_kernels();
[[nodiscard]] OpKernels batch_norm_kernels();
[[nodiscard]] OpKernels conv2d_kernels();
[[nodiscard]] OpKernels convert_kernels();
[[nodiscard]] OpKernels dropout_kernels();
[[nodiscard]] OpKernels flatten_kernels();
[[nodiscard]] OpKernels linear_kernels();
[[nodiscard]] OpKernels max_pool2d_kernels();
[[nodiscard]] OpKernels mean_kernels();
[[nodiscard]] OpKernels mul_kernels();
[[nodiscard]] OpKernels relu_kernels();
[[nodiscard]] OpKernels reshape_kernels();
[[nodiscard]] OpKernels softmax_cross_entropy_kernels();
[[nodiscard]] OpKernels sum_kernels();

// Elements that are worth a thread of their own in elementwise loops.
inline constexpr std::size_t grain = 16384;

// Tensor i, or none: absent inputs and gradients nobody wants may be left out at the end.
[[nodiscard]] inline Tensor tensor_or_none(std::span<const Tensor> tensors, std::size_t i) {
  return i < tensors.size() ? tensors[i] : Tensor{};
}
[[nodiscard]] inline std::size_t count(const Tensor& tensor) { return static_cast<std::size_t>(tensor.elements()); }
// A tensor seen as (rows, columns), columns being its last extent.
[[nodiscard]] inline std::size_t columns_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.rank() == 0 ? 1 : tensor.shape[-1]);
}
[[nodiscard]] inline std::size_t rows_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.rank() == 0 ? 1 : tensor.shape.elements(0, tensor.shape.rank() - 1));
}

// The one element of a gradient of f64 or f32; 0 where none came.
[[nodiscard]] double scalar(const Tensor& gradient);

// y = max(y, 0), NaN stays. (oneDNN's own relu makes NaN 0, which would hide a diverging model.)
void relu_in_place(std::span<float> y);
void fill_zero(const Tensor& tensor);
// Same elements; nothing where both are one memory.
void copy_elements(const Tensor& from, const Tensor& to);

}  // namespace trireme::backend
