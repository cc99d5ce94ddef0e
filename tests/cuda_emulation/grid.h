// One kernel at a time: its blocks in seeded order, the threads of a block as fibers that take turns at barriers and
// warp collectives. Device code comes here through device_language.h.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

namespace trireme::cuda_emulation {

inline constexpr unsigned warp_lanes = 32, most_threads = 1024;
inline constexpr std::size_t shared_bytes = 48 << 10;  // of a block

// What a running GPU thread knows of itself.
struct GpuThread {
  uint3 thread_index{}, block_index{};
  dim3 block_extent, grid_extent;
  unsigned index = 0, lane = 0, warp = 0;
};
extern GpuThread* current_thread;  // the one that runs, of all threads of the host: the device is locked meanwhile

// Runs all of it. What it finds ends it.
void run_grid(const char* kernel, dim3 blocks, dim3 threads, const std::function<void()>& body);

using Place = std::source_location;
bool block_barrier(bool vote, Place place);  // whether any thread that came voted so
// All lanes of the mask that have not left the kernel meet at one place with one mask and one kind; each gives a value.
enum class Collective { sync, shuffle, up, down, butterfly, ballot };
struct Met {
  const std::uint64_t* values;  // by lane; until the next collective of the mask's lanes
  unsigned lanes;               // that gave one
};
Met meet(unsigned mask, Collective kind, std::uint64_t value, Place place);
// Reports, and ends the kernel.
[[noreturn]] void trap(const char* what, Place place);
// Shared memory of the running block, the same for each `site`; NaN at first.
void* shared_array(const void* site, std::size_t bytes, std::size_t alignment, const char* name, Place place);

}  // namespace trireme::cuda_emulation
