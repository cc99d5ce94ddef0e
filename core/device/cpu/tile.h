// Leaf loops of the CPU kernels over some elements, serial; also what the communication thread adds with.
#pragma once

#include <cstddef>
#include <span>

#include "core/device/update_math.h"

namespace trireme::device::cpu {

// into[i] = left[i] + right[i]; either may be `into`.
void add(float* into, const float* left, const float* right, std::size_t count);
void add(double* into, const double* left, const double* right, std::size_t count);
// Sum of squares of one tile (or its part in use): element i goes to f64 partial i mod 8, partials are added
// pairwise.
[[nodiscard]] double squares(const float* values, std::size_t count);
// add() tile by tile, each tile's squares taken while it is in cache; squares may be empty.
void add_tiles(std::span<float> into, const float* left, const float* right, std::span<double> squares);

void sgd(float* parameters, const float* gradients, std::size_t count, const UpdateFactors& factors);
void momentum(float* parameters, const float* gradients, float* velocity, std::size_t count,
              const UpdateFactors& factors);
void adamw(float* parameters, const float* gradients, float* first, float* second, std::size_t count,
           const UpdateFactors& factors);

}  // namespace trireme::device::cpu
