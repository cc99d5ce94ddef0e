// Memory of the emulated device, closed to the host; pinned host memory; whether a pointer may be used. All but
// DeviceMemoryOpen and closed_to_host are called with the device locked (schedule.h).
#pragma once

#include <cstddef>

namespace trireme::cuda_emulation {

inline constexpr std::size_t device_bytes = std::size_t{4} << 30;  // on each device

// 256-byte aligned, all bytes 0xFF (NaN); null where device_bytes would be exceeded. Memory freed last is taken first.
[[nodiscard]] void* allocate_device(std::size_t bytes);
void free_device(void* memory);  // reports what is no allocation
[[nodiscard]] std::size_t free_device_bytes();

[[nodiscard]] void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory);

[[nodiscard]] bool is_device(const void* pointer);
[[nodiscard]] bool is_pinned(const void* pointer);
// Reports, and returns false, where [pointer, pointer + bytes) does not lie in one living allocation of device or
// pinned memory.
bool check_range(const void* pointer, std::size_t bytes, const char* what);
// An argument of a kernel: a pointer to device or pinned memory (or its end), or null. `bytes` of any other type are
// searched for addresses of freed and of pageable memory.
bool check_pointer(const char* kernel, std::size_t argument, const void* pointer);
bool check_value(const char* kernel, std::size_t argument, const void* value, std::size_t bytes);

// While one lives, this thread gets at device memory.
class DeviceMemoryOpen {
 public:
  DeviceMemoryOpen();
  ~DeviceMemoryOpen();
  DeviceMemoryOpen(const DeviceMemoryOpen&) = delete;
  DeviceMemoryOpen& operator=(const DeviceMemoryOpen&) = delete;
};

[[nodiscard]] bool closed_to_host(const void* byte);

}  // namespace trireme::cuda_emulation
