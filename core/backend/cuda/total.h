// The sum of all elements and the gradient of something proportional to it, for sum and mean.
#pragma once

#include "core/backend/cuda/kernels.h"

namespace trireme::backend::cuda {

// out (one f64) = Σ x ÷ divisor, in f64 by fixed blocks.
void total(const Tensor& x, double divisor, const Tensor& out, tensor::Arena& scratch, device::Stream& stream);
// All elements of dx = gradient ÷ divisor.
void spread(const Scalar& gradient, double divisor, const Tensor& dx, device::Stream& stream);

}  // namespace trireme::backend::cuda
