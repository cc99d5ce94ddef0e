// The border to libtrireme_cuda.so: how it is found, and the symbol that make_cuda looks up in it. backend/cuda/cuda.h
// and comm/nccl/nccl.h have theirs.
#pragma once

#include <memory>

#include "core/device/device.h"

namespace trireme::device {

// extern "C" std::shared_ptr<trireme::device::Device> trireme_cuda_make_device(int local_rank), exported by the
// module. Also registers the module's op kernels. Throws Error(usage): no driver, no device, or a device that is
// too old, in the driver's words.
using MakeDevice = std::shared_ptr<Device> (*)(int local_rank);
inline constexpr const char* make_device_symbol = "trireme_cuda_make_device";
inline constexpr const char* cuda_module_name = "libtrireme_cuda.so";
inline constexpr const char* cuda_module_variable = "TRIREME_CUDA_MODULE";  // names another file, for tests

// A symbol of the module, which is opened at the first call and stays open. Throws Error(usage) where module or symbol
// are missing.
[[nodiscard]] void* cuda_symbol(const char* name);

}  // namespace trireme::device
