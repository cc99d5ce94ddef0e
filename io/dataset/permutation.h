// Permutations that are the same on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/philox.h"

namespace trireme::io {

// What is put into random order; the numbers of one never meet those of another.
enum class Shuffled : std::uint32_t { samples = 0, packing = 1, chunks = 2, window = 3 };

[[nodiscard]] constexpr RandomKey shuffle_key(std::uint64_t seed, std::uint64_t epoch, Shuffled what,
                                              std::uint32_t index = 0) {
  return random_key(seed, Purpose::shuffle, epoch, static_cast<std::uint32_t>(what), index);
}

// Fisher-Yates from the end: element i changes places with number i of the stream `key` taken below i + 1, for
// i = n − 1 … 1 (std::shuffle's use of its generator is not specified). Beyond 2^32 elements 64 bits are drawn for
// each.
void permute(std::span<std::uint32_t> items, const RandomKey& key);
void permute(std::span<std::uint64_t> items, const RandomKey& key);

}  // namespace trireme::io
