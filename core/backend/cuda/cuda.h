// The border to the CUDA module: how its ops are found. No CUDA header.
#pragma once

#include "core/ops/op.h"

namespace trireme::backend {

// extern "C" const ops::Backend* trireme_cuda_backend(bool tf32), exported by the module; after
// trireme_cuda_make_device. tf32: products round their operands to 10 bits of mantissa and sum in f32.
using GetCudaBackend = const ops::Backend* (*)(bool tf32);
inline constexpr const char* cuda_backend_symbol = "trireme_cuda_backend";

// extern "C" const char* trireme_cuda_description(): "driver 13.0, CUDA 13.0 (built with 13.0), cuBLASLt …".
using DescribeCuda = const char* (*)();
inline constexpr const char* cuda_description_symbol = "trireme_cuda_description";

}  // namespace trireme::backend
