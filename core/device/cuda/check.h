// Errors of the CUDA run time. No formatting library here: kernel files include it.
#pragma once

#include <cuda_runtime_api.h>

namespace trireme::device::cuda {

// Throws Error with `what`, the error's name and text, and what to do: internal for a wrong call or a faulty kernel, io
// where memory ran out, lost_peer (retry) where the device itself failed. A sticky error (the context is lost, every
// later call returns it) says so and that an earlier kernel may be the culprit; any other is cleared.
void check(cudaError_t error, const char* what);

// Sticky: the device works no more for this process.
enum class Sticky { no, kernel, hardware };
[[nodiscard]] Sticky stickiness(cudaError_t error);

}  // namespace trireme::device::cuda
