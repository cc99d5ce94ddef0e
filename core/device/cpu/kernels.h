// The CPU's table of kernels.
#pragma once

#include <cstddef>

#include "core/device/kernels.h"

namespace trireme::device::cpu {

[[nodiscard]] const Kernels& kernels();

void update(const UpdateArguments& arguments, Stream& stream);

// Tiles a thread takes at least: 128 KiB of one arena, well above the cost of waking it. (On a stream's own thread
// parallel_for runs serially.)
inline constexpr std::size_t tile_grain = 8;

}  // namespace trireme::device::cpu
