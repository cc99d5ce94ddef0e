// What this process holds in memory, as the kernel counts it (/proc/self/status).
#pragma once

#include <cstdint>

namespace trireme {

// Resident bytes, now and at their highest; 0 where /proc tells nothing. Thread-safe.
[[nodiscard]] std::uint64_t resident_bytes();
[[nodiscard]] std::uint64_t peak_resident_bytes();

}  // namespace trireme
