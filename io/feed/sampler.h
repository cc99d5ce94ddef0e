// (seed, position) → sample: a pure function, so a cursor is one integer. Epoch = position ÷ N; every sample comes once
// in each epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/dataset/dataset.h"

namespace trireme::io {

enum class Shuffle { global, block, none };

// Bytes that a sampler of each rank keeps at most, outside data.memory_mib: two whole permutations where `shuffle` is
// global.
[[nodiscard]] std::uint64_t order_bytes(std::int64_t samples, Shuffle shuffle);

// Deterministic across machines: Philox keyed by (seed, epoch) and Fisher-Yates with to_below. Not thread-safe (keeps
// the permutation of the running and the next epoch); each feed has its own.
class Sampler {
 public:
  // block: the chunks of all files permuted, then the rows of windows of `window` chunks mixed.
  Sampler(const Dataset& dataset, std::uint64_t seed, Shuffle shuffle, std::int64_t window);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  [[nodiscard]] std::int64_t sample(std::uint64_t position);
  [[nodiscard]] std::int64_t samples() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::io
