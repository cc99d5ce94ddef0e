// Leaf loops of the CPU kernels, compiled for each level of vector instructions.
#include "core/device/cpu/tile.h"

#include <algorithm>

#include "core/base/range.h"
#include "core/base/simd.h"

namespace trireme::device::cpu {

TRIREME_SIMD void add(float* into, const float* left, const float* right, std::size_t count) {
#pragma GCC ivdep  // `into` may be an operand, element on element: no dependence between elements
  for (std::size_t i = 0; i < count; ++i) into[i] = left[i] + right[i];
}

TRIREME_SIMD void add(double* into, const double* left, const double* right, std::size_t count) {
#pragma GCC ivdep  // `into` may be an operand, element on element: no dependence between elements
  for (std::size_t i = 0; i < count; ++i) into[i] = left[i] + right[i];
}

// The square of an f32 is exact in f64, so fused or separate multiply-add give the same bits.
TRIREME_SIMD double squares(const float* values, std::size_t count) {
  double partial[8] = {};
  const std::size_t whole = count / 8 * 8;
  for (std::size_t i = 0; i < whole; i += 8)
    for (std::size_t j = 0; j < 8; ++j) {
      const double value = static_cast<double>(values[i + j]);
      partial[j] += value * value;
    }
  for (std::size_t j = 0; j < count - whole; ++j) {
    const double value = static_cast<double>(values[whole + j]);
    partial[j] += value * value;
  }
  return ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
         ((partial[4] + partial[5]) + (partial[6] + partial[7]));
}

void add_tiles(std::span<float> into, const float* left, const float* right, std::span<double> tile_squares) {
  if (tile_squares.empty()) return add(into.data(), left, right, into.size());
  for (std::size_t begin = 0, tile = 0; begin < into.size(); begin += tile_elements, ++tile) {
    const std::size_t count = std::min<std::size_t>(tile_elements, into.size() - begin);
    add(into.data() + begin, left + begin, right + begin, count);
    tile_squares[tile] = squares(into.data() + begin, count);
  }
}

TRIREME_SIMD void sgd(float* __restrict parameters, const float* __restrict gradients, std::size_t count,
                      const UpdateFactors& factors) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < count; ++i) sgd_step(parameters[i], gradients[i], f);
}

TRIREME_SIMD void momentum(float* __restrict parameters, const float* __restrict gradients, float* __restrict velocity,
                           std::size_t count, const UpdateFactors& factors) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < count; ++i) momentum_step(parameters[i], gradients[i], velocity[i], f);
}

TRIREME_SIMD void adamw(float* __restrict parameters, const float* __restrict gradients, float* __restrict first,
                        float* __restrict second, std::size_t count, const UpdateFactors& factors) {
  const UpdateFactors f = factors;
  for (std::size_t i = 0; i < count; ++i) adamw_step(parameters[i], gradients[i], first[i], second[i], f);
}

}  // namespace trireme::device::cpu
