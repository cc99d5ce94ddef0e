// A range of elements of an arena.
#pragma once

#include <cstdint>

namespace trireme {

struct Range {
  std::uint64_t begin = 0, end = 0;  // elements [begin, end)

  [[nodiscard]] constexpr std::uint64_t size() const { return end - begin; }
  [[nodiscard]] constexpr bool empty() const { return begin == end; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

// The granule of arenas: reductions cut at tiles, the norm is summed tile by tile.
inline constexpr std::uint64_t tile_elements = 4096;

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
[[nodiscard]] constexpr std::uint64_t tiles_of(std::uint64_t elements) {
  return round_up(elements, tile_elements) / tile_elements;
}

}  // namespace trireme
