// The numbers of a RandomFill: the same lines on CPU and CUDA.
#pragma once

#include <cmath>
#include <cstddef>

#include "core/base/philox.h"
#include "core/device/kernels.h"

namespace trireme::device {

// Uniform in [a, b), or normal with mean a and deviation b (Box and Muller, numbers 2i and 2i + 1).
TRIREME_HOST_DEVICE inline double random_number(const RandomFill& fill, const RandomKey& key, std::size_t i) {
  if (fill.distribution == Distribution::uniform)
    return fill.a + (fill.b - fill.a) * double{to_uniform(random_bits(key, i))};
  constexpr double pi = 3.14159265358979323846;
  const double u = double{to_uniform(random_bits(key, 2 * i))}, v = double{to_uniform(random_bits(key, 2 * i + 1))};
  return fill.a + fill.b * std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * pi * v);
}

// Writes element i.
TRIREME_HOST_DEVICE inline void random_element(const RandomFill& fill, const RandomKey& key, std::size_t i) {
  if (fill.distribution == Distribution::bits) {
    static_cast<std::uint32_t*>(fill.data)[i] = random_bits(key, i);
  } else if (fill.dtype == Dtype::f64) {
    static_cast<double*>(fill.data)[i] = random_number(fill, key, i);
  } else {
    static_cast<float*>(fill.data)[i] = static_cast<float>(random_number(fill, key, i));
  }
}

// Backward's seed; `block` may be null.
TRIREME_HOST_DEVICE inline void write_seed(void* gradient, Dtype dtype, const StepBlock* block, double n) {
  const double seed = (block == nullptr ? 1.0 : double{block->loss_scale}) / n;
  if (dtype == Dtype::f64) {
    *static_cast<double*>(gradient) = seed;
  } else {
    *static_cast<float*>(gradient) = static_cast<float>(seed);
  }
}

}  // namespace trireme::device
