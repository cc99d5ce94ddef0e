// The border to libtrireme_cuda.so: the one symbol that make_cuda looks up in it.
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

}  // namespace trireme::device
