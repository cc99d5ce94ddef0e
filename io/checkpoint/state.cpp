// Slices of arenas, and doubles as exact text.
#include "io/checkpoint/state.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/error.h"
#include "io/checkpoint/format.h"

namespace trireme::io {

Range slice_of(std::uint64_t elements, std::uint64_t index, std::uint64_t count) {
  if (index >= count) fail(ExitCode::internal, "slice {} of {}", index, count);
  const std::uint64_t tiles = tiles_of(elements);
  const auto begin_of = [&](std::uint64_t piece) {  // tiles · piece ÷ count without overflow
    return std::min(elements, (tiles / count * piece + tiles % count * piece / count) * tile_elements);
  };
  return {begin_of(index), begin_of(index + 1)};
}

Range ArenaState::slice(std::uint64_t index, std::uint64_t count) const { return slice_of(elements(), index, count); }

std::string exact(double value) { return fmt::format("{:a}", value); }

double exact_double(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) fail(ExitCode::data, "'{}' is not a number", text);
  return value;
}

}  // namespace trireme::io
