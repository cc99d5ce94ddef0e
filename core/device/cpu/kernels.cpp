// Tree add, tile squares, scale, fill, seed and random numbers on the CPU.
#include "core/device/cpu/kernels.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/simd.h"
#include "core/base/threads.h"
#include "core/device/cpu/tile.h"
#include "core/device/random_math.h"

namespace trireme::device::cpu {

namespace {

void check_sizes(const char* kernel, std::size_t into, std::size_t left, std::size_t right) {
  if (into != left || into != right)
    fail(ExitCode::internal, "kernel {}: {} elements from {} and {}", kernel, into, left, right);
}
void check_squares(const char* kernel, std::size_t elements, std::size_t squares) {
  if (squares != tiles_of(elements))
    fail(ExitCode::internal, "kernel {}: {} squares for {} tiles", kernel, squares, tiles_of(elements));
}

// The elements of tiles [begin, end) of an arena of `size`.
Range elements_of(std::size_t begin, std::size_t end, std::size_t size) {
  return {begin * tile_elements, std::min<std::size_t>(end * tile_elements, size)};
}

TRIREME_SIMD void scale_leaf(float* values, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

void add_f32(std::span<float> into, std::span<const float> left, std::span<const float> right,
             std::span<double> squares, Stream& stream) {
  check_sizes("add", into.size(), left.size(), right.size());
  if (!squares.empty()) check_squares("add", into.size(), squares.size());
  stream.run([=] {
    parallel_for(tiles_of(into.size()), tile_grain, [&](std::size_t begin, std::size_t end) {
      const Range part = elements_of(begin, end, into.size());
      add_tiles(into.subspan(part.begin, part.size()), left.data() + part.begin, right.data() + part.begin,
                squares.empty() ? squares : squares.subspan(begin, end - begin));
    });
  });
}

void add_f64(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream& stream) {
  check_sizes("add_f64", into.size(), left.size(), right.size());
  stream.run([=] { add(into.data(), left.data(), right.data(), into.size()); });
}

void tile_squares(std::span<const float> values, std::span<double> result, Stream& stream) {
  check_squares("tile_squares", values.size(), result.size());
  stream.run([=] {
    parallel_for(result.size(), tile_grain, [&](std::size_t begin, std::size_t end) {
      for (std::size_t tile = begin; tile < end; ++tile) {
        const Range part = elements_of(tile, tile + 1, values.size());
        result[tile] = squares(values.data() + part.begin, part.size());
      }
    });
  });
}

void scale(std::span<float> values, float factor, Stream& stream) {
  stream.run([=] {
    parallel_for(tiles_of(values.size()), tile_grain, [&](std::size_t begin, std::size_t end) {
      const Range part = elements_of(begin, end, values.size());
      scale_leaf(values.data() + part.begin, part.size(), factor);
    });
  });
}

void fill(std::span<float> values, float value, Stream& stream) {
  stream.run([=] {
    parallel_for(tiles_of(values.size()), tile_grain, [&](std::size_t begin, std::size_t end) {
      const Range part = elements_of(begin, end, values.size());
      std::fill_n(values.data() + part.begin, part.size(), value);
    });
  });
}

void seed(void* gradient, Dtype dtype, const StepBlock* block, double n, Stream& stream) {
  stream.run([=] { write_seed(gradient, dtype, block, n); });
}

void random(const RandomFill& fill, Stream& stream) {
  stream.run([fill] {
    const RandomKey key = op_key(*fill.block, fill.ordinal);
    for (std::size_t i = 0; i < fill.count; ++i) random_element(fill, key, i);
  });
}

}  // namespace

const Kernels& kernels() {
  static constexpr Kernels table{update, add_f32, add_f64, tile_squares, scale, fill, seed, random};
  return table;
}

}  // namespace trireme::device::cpu
