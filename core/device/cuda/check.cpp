// cudaError_t → Error.
#include "core/device/cuda/check.h"

#include "core/base/error.h"

namespace trireme::device::cuda {

Sticky stickiness(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout: return Sticky::kernel;
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorDevicesUnavailable:
    case cudaErrorContained:
    case cudaErrorUnknown: return Sticky::hardware;
    default: return Sticky::no;
  }
}

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const char* const text = cudaGetErrorString(error);
  const char* const name = cudaGetErrorName(error);
  switch (stickiness(error)) {
    case Sticky::kernel:
      fail(ExitCode::internal,
           "cuda: {}: {} ({}); the device's context is lost. This call or any kernel before it is at fault: run again "
           "with "
           "CUDA_LAUNCH_BLOCKING=1, or under compute-sanitizer, to see which",
           what, text, name);
    case Sticky::hardware:
      fail(ExitCode::lost_peer,
           "cuda: {}: {} ({}); the device itself failed: retry, on another host if it comes again (nvidia-smi and the "
           "kernel's log have the Xid)",
           what, text, name);
    case Sticky::no: break;
  }
  static_cast<void>(cudaGetLastError());  // or the next launch would be blamed
  if (error == cudaErrorMemoryAllocation)
    fail(ExitCode::io, "cuda: {}: {} ({}); use a smaller model or batch", what, text, name);
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorUnsupportedPtxVersion)
    fail(ExitCode::usage,
         "cuda: {}: {} ({}); this build has no code for the device: build with -DCMAKE_CUDA_ARCHITECTURES "
         "of it (trireme version shows it), or with native there",
         what, text, name);
  fail(ExitCode::internal, "cuda: {}: {} ({})", what, text, name);
}

}  // namespace trireme::device::cuda
