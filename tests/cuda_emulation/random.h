// The emulation's own random numbers (splitmix64): an order that a seed gives, no statistics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme::cuda_emulation {

class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, limit), limit < 2³².
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(((next() >> 32) * limit) >> 32); }

 private:
  std::uint64_t state_;
};

}  // namespace trireme::cuda_emulation
