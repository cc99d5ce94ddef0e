// The carry's sums are those of the one binary tree, bit by bit, for every way of dealing leaves to ranks.
#include "core/train/carry.h"

#include <gtest/gtest.h>

#include <vector>

namespace trireme::train {
namespace {

float leaf(std::uint32_t i) { return 1.0f / static_cast<float>(3 + 7 * i); }

float tree(std::uint32_t begin, std::uint32_t end) {
  return end - begin == 1 ? leaf(begin) : tree(begin, (begin + end) / 2) + tree((begin + end) / 2, end);
}

// Sum of leaves [first, first + locals) by the carry.
float carried(Carry& carry, std::uint32_t first, std::uint32_t locals) {
  std::vector<float> arenas(carry.arenas());
  for (std::uint32_t i = 0; i < locals; ++i) {
    const std::uint32_t arena = carry.take();
    arenas[arena] = leaf(first + i);
    if (i + 1 < locals) {
      carry.fold(arena, [&](std::uint32_t into, std::uint32_t other) { arenas[into] = arenas[into] + arenas[other]; });
      continue;
    }
    const auto chain = carry.last(arena);
    for (std::size_t k = 1; k < chain.size(); ++k) arenas[chain[k]] = arenas[chain[k]] + arenas[chain[k - 1]];
    return arenas[chain.back()];
  }
  return 0;
}

TEST(Carry, IsASubtreeForEveryPowerOfTwo) {
  for (const std::uint32_t locals : {1u, 2u, 4u, 8u, 16u, 32u}) {
    Carry carry(locals);
    for (std::uint32_t step = 0; step < 5; ++step)
      for (std::uint32_t first = 0; first < 64; first += locals)
        EXPECT_EQ(carried(carry, first, locals), tree(first, first + locals)) << locals << " from " << first;
  }
}

TEST(Carry, OneMoreArenaForEachDoubling) {
  EXPECT_EQ(Carry(1).arenas(), 1u);
  EXPECT_EQ(Carry(2).arenas(), 2u);
  EXPECT_EQ(Carry(4).arenas(), 3u);
  EXPECT_EQ(Carry(8).arenas(), 4u);
}

TEST(Carry, SumsAnyCount) {
  for (std::uint32_t locals = 1; locals <= 20; ++locals) {
    Carry carry(locals);
    for (int step = 0; step < 3; ++step) {
      double expected = 0;
      for (std::uint32_t i = 0; i < locals; ++i) expected += static_cast<double>(leaf(i));
      EXPECT_NEAR(static_cast<double>(carried(carry, 0, locals)), expected, 1e-6);  // f32 rounding of at most 20 adds
    }
  }
}

}  // namespace
}  // namespace trireme::train
