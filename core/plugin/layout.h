// Where every parameter and buffer lies in its arena: decided once from the plugin's declarations, the same on
// every rank, independent of the world size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/range.h"
#include "core/base/shape.h"

namespace trireme::plugin {

enum class Init : std::int32_t { zeros = 0, constant, uniform, normal };  // as trireme_init
enum class Reduce : std::int32_t { mean = 0, max = 1 };                   // as trireme_reduce

struct Parameter {
  std::string name;
  Shape shape;
  Init init = Init::zeros;
  double a = 0, b = 0;  // constant; uniform [a, b); normal: mean, deviation
  bool decay = true;
  Range range{};  // in the parameter, gradient and moment arenas
};
struct Buffer {
  std::string name;
  Shape shape;  // f32
  Reduce reduce = Reduce::mean;
  double initial = 0;
  Range range{};  // in the buffer arena
};

// Places parameters: the decayed group first, padded to a tile, then the others; each begins on 64 B (16 elements);
// the end is padded to a tile. Buffers: those reduced by mean first, padded to a tile, then by max; padded to a tile.
struct Layout {
  std::vector<Parameter> parameters;  // in order of declaration
  std::vector<Buffer> buffers;
  std::uint64_t decayed_elements = 0;    // end of the decayed group, whole tiles
  std::uint64_t parameter_elements = 0;  // whole tiles
  std::uint64_t mean_elements = 0;       // end of the buffers reduced by mean, whole tiles
  std::uint64_t buffer_elements = 0;     // whole tiles

  // Fills the ranges. Throws Error(internal) on a name used twice or an empty shape.
  void place();
  // Initial values: number i of a parameter is number i of the stream keyed by (seed, hash of its name): the order of
  // declaration and the world size change nothing. Padding is zero. Spans are host memory.
  void initialise(std::uint64_t seed, std::span<float> parameter_arena, std::span<float> buffer_arena) const;
};

}  // namespace trireme::plugin
