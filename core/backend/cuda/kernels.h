// The kernels of each op on CUDA, and small things they share; ops without a line here are not on this backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ops/op.h"

namespace trireme::backend::cuda {

using ops::Backward;
using ops::Forward;
using ops::OpKernels;
using tensor::Tensor;

[[nodiscard]] OpKernels accuracy_kernels();
[[nodiscard]] OpKernels add_kernels();
[[nodiscard]] OpKernels convert_kernels();
[[nodiscard]] OpKernels dropout_kernels();
[[nodiscard]] OpKernels flatten_kernels();
[[nodiscard]] OpKernels linear_kernels(bool tf32);
[[nodiscard]] OpKernels mean_kernels();
[[nodiscard]] OpKernels mul_kernels();
[[nodiscard]] OpKernels relu_kernels();
[[nodiscard]] OpKernels reshape_kernels();
[[nodiscard]] OpKernels softmax_cross_entropy_kernels();
[[nodiscard]] OpKernels sum_kernels();

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

// The one element of a gradient as kernels read it: f64 or f32 on the device, or none, which counts as 0.
struct Scalar {
  const void* data = nullptr;
  bool is_f64 = false;
};
[[nodiscard]] Scalar scalar(const Tensor& gradient);

// Same elements; nothing where both are one memory. `from` without data: zeros.
void copy_elements(const Tensor& from, const Tensor& to, device::Stream& stream);

}  // namespace trireme::backend::cuda
