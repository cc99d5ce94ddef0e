// The version of Trireme, as CMake has it.
#pragma once

namespace trireme {

[[nodiscard]] const char* version();  // "0.1.0"

}  // namespace trireme
