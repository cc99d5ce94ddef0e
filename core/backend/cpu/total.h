// The sum of all elements and the gradient of something proportional to it, for sum and mean.
#pragma once

#include "core/backend/cpu/kernels.h"

namespace trireme::backend {

// In f64, by fixed blocks: the number of threads changes no bit.
[[nodiscard]] double total(const Tensor& x, tensor::Arena& scratch);
void fill_all(const Tensor& tensor, float value);

}  // namespace trireme::backend
