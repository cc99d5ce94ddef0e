// The kernels of each op on CUDA; ops without a line here are not on this backend.
#pragma once

#include "core/ops/op.h"

namespace trireme::backend::cuda {

[[nodiscard]] ops::OpKernels relu_kernels();

}  // namespace trireme::backend::cuda
