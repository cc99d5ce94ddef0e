// Errors of the CUDA run time. No formatting library here: kernel files include it.
#pragma once

#include <cuda_runtime_api.h>

namespace trireme::device::cuda {

// Throws Error(internal; io where memory ran out) with `what`, the error's name and its text.
void check(cudaError_t error, const char* what);

}  // namespace trireme::device::cuda
