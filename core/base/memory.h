// Memory as the kernel counts it.
#pragma once

#include <cstdint>

namespace trireme {

// Resident bytes of this process (/proc/self/status), now and at their highest; 0 where /proc tells nothing.
// Thread-safe.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();
// Of the machine.
[[nodiscard]] std::uint64_t host_memory_bytes();

}  // namespace trireme
