// Whether the code that this build holds runs on a device. Pure; no CUDA header.
#pragma once

#include <string>
#include <string_view>

namespace trireme::device::cuda {

enum class Code { binary, ptx, none };  // runs as built; compiled by the driver at the first start; not at all

// `architectures` as CMake lists them ("80;90-real;100f-virtual;all-major"; commas do as well), the device's compute
// capability. Code of one major runs on its later minors ("a": on that very capability alone; "f": on its family, the
// same major); PTX on everything newer. A word without number ("native", "all") is trusted.
[[nodiscard]] Code code_for(std::string_view architectures, int major, int minor);

// What to set CMAKE_CUDA_ARCHITECTURES to: those of the build and the device's, with semicolons.
[[nodiscard]] std::string with_device(std::string_view architectures, int major, int minor);

}  // namespace trireme::device::cuda
