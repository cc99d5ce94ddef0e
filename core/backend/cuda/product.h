// Matrix products by cuBLASLt.
#pragma once

#include <cstdint>

#include "core/device/stream.h"
#include "core/tensor/arena.h"

namespace trireme::backend::cuda {

// c (m, n) = a (m, k) · b (k, n) + bias (n, may be null), then max(0, c) where relu (NaN stays), f32, dense row-major;
// a "transposed" operand lies in memory with its two extents exchanged.
struct Product {
  const float* a;
  bool a_transposed;
  const float* b;
  bool b_transposed;
  const float* bias;
  bool relu;
  float* c;
  std::int64_t m, n, k;
  bool tf32;
};
// The algorithm of a shape is chosen once (the library's first proposal without atomics) and kept: the same bits at
// every call. The first call of a shape with relu waits for the device; later ones only queue. Throws Error(internal)
// in cuBLASLt's words.
void multiply(const Product& product, device::Stream& stream);

}  // namespace trireme::backend::cuda
