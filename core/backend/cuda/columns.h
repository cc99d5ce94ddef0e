// Elementwise relu, its gradient, and sums down the columns of a (rows, columns) array, for several ops. Rows are cut in chunks
// whose size follows from the shape alone: f32 sums within a thread's share of a chunk, f64 beyond, always in the same order.
#pragma once

#include <cstddef>

#include "core/device/stream.h"
#include "core/tensor/arena.h"

namespace trireme::backend::cuda {

// y = x where x ≥ 0, else 0; NaN stays. May be in place.
void apply_relu(const float* x, float* y, std::size_t count, device::Stream& stream);
// sums (columns) = Σ over rows of x (rows, columns); x null: zeros. `times`, if not null: of x · times.
void column_sums(const float* x, const float* times, std::size_t rows, std::size_t columns, float* sums,
                 tensor::Arena& scratch, device::Stream& stream);
// dz = dy where y > 0, else 0 (NaN in y passes dy; dy null: zeros); sums as above of dz, if not null.
void relu_gradient(const float* dy, const float* y, float* dz, std::size_t rows, std::size_t columns, float* sums,
                   tensor::Arena& scratch, device::Stream& stream);

}  // namespace trireme::backend::cuda
