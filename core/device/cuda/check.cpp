// cudaError_t → Error.
#include "core/device/cuda/check.h"

#include "core/base/error.h"

namespace trireme::device::cuda {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const ExitCode code = error == cudaErrorMemoryAllocation ? ExitCode::io : ExitCode::internal;
  fail(code, "cuda: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

}  // namespace trireme::device::cuda
