// Philox 4x32-10: the published vectors (Random123's kat_vectors), then the streams built on it.
#include "core/base/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <tuple>

namespace trireme {
namespace {

void expect_equal(const Philox4& actual, std::array<std::uint32_t, 4> expected) {
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(actual.x[i], expected[i]) << "word " << i;
}

TEST(Philox, PublishedVectors) {
  expect_equal(philox({{0, 0, 0, 0}}, 0, 0), {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  expect_equal(philox({{ones, ones, ones, ones}}, ones, ones), {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  expect_equal(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST(Philox, ComputedAtCompileTimeAlike) {
  constexpr Philox4 fixed = philox({{0, 0, 0, 0}}, 0, 0);
  static_assert(fixed.x[0] == 0x6627e8d5 && fixed.x[3] == 0x9b00dbd8);
  const RandomKey key = random_key(7, Purpose::model, 1, 2, 3);
  for (std::uint64_t i : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{4}, std::uint64_t{1} << 35}) {
    EXPECT_EQ(random_bits(key, i), random_block(key, i / 4).x[i % 4]);
  }
  EXPECT_NE(random_bits(key, 5), random_bits(key, (std::uint64_t{4} << 32) + 5)) << "the block's upper half counts";
}

TEST(RandomKey, EveryCoordinateCounts) {
  using Words = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  std::set<Words> seen;
  int made = 0;
  const auto add = [&](std::uint64_t seed, Purpose purpose, std::uint64_t a, std::uint32_t b, std::uint32_t c) {
    const RandomKey key = random_key(seed, purpose, a, b, c);
    seen.insert({key.k0, key.k1, key.c2, key.c3});
    ++made;
  };
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32})
    for (const Purpose purpose : {Purpose::model, Purpose::parameter, Purpose::shuffle, Purpose::transform})
      for (const std::uint64_t a : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, std::uint64_t{9}})
        for (const std::uint32_t b : {0u, 1u, 9u})
          for (const std::uint32_t c : {0u, 1u, 9u}) add(seed, purpose, a, b, c);
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(made));
}

// n = 2^20 uniform numbers: the mean lies within 5 σ, σ = 1 ÷ √(12 n); so does the variance, whose σ is
// √((1/80 - 1/144) ÷ n); chi-square over 256 cells within 5 σ of 255, σ = √510. One fixed key: no flaking.
TEST(Uniform, MeanVarianceAndChiSquare) {
  const RandomKey key = random_key(1, Purpose::model, 2, 3, 4);
  constexpr int n = 1 << 20;
  double sum = 0, squares = 0;
  std::array<int, 256> cells{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const float value = to_uniform(random_bits(key, i));
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += static_cast<double>(value);
    squares += (static_cast<double>(value) - 0.5) * (static_cast<double>(value) - 0.5);
    ++cells[static_cast<std::size_t>(value * 256)];
  }
  EXPECT_NEAR(sum / n, 0.5, 5 / std::sqrt(12.0 * n));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt((1.0 / 80 - 1.0 / 144) / n));
  double chi_square = 0;
  for (const int count : cells) chi_square += (count - n / 256.0) * (count - n / 256.0) / (n / 256.0);
  EXPECT_NEAR(chi_square, 255, 5 * std::sqrt(510.0));
}

// Streams of neighbouring keys: the correlation of n pairs has σ = 1 ÷ √n.
TEST(Uniform, NeighbouringKeysAreIndependent) {
  constexpr int n = 1 << 16;
  const RandomKey base = random_key(1, Purpose::model, 10, 2, 3);
  const RandomKey others[] = {random_key(2, Purpose::model, 10, 2, 3), random_key(1, Purpose::transform, 10, 2, 3),
                              random_key(1, Purpose::model, 11, 2, 3), random_key(1, Purpose::model, 10, 3, 3),
                              random_key(1, Purpose::model, 10, 2, 4)};
  for (const RandomKey& other : others) {
    double product = 0;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double a = static_cast<double>(to_uniform(random_bits(base, i))) - 0.5;
      const double b = static_cast<double>(to_uniform(random_bits(other, i))) - 0.5;
      product += 12 * a * b;
    }
    EXPECT_NEAR(product / n, 0, 5 / std::sqrt(static_cast<double>(n)));
  }
}

TEST(ToUniform, Ends) {
  EXPECT_EQ(to_uniform(0), 0.0f);
  EXPECT_EQ(to_uniform(0xFFFFFFFF), 1.0f - 0x1p-24f);
  EXPECT_EQ(to_uniform(0x80000000), 0.5f);
}

TEST(ToBelow, EndsAndEvenSpread) {
  EXPECT_EQ(to_below(0, 10), 0u);
  EXPECT_EQ(to_below(0xFFFFFFFF, 10), 9u);
  EXPECT_EQ(to_below(0xFFFFFFFF, 1), 0u);
  EXPECT_EQ(to_below(0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFEu);
  // 7 cells, n draws: each count within 5 σ = 5 √(n · 1/7 · 6/7).
  const RandomKey key = random_key(5, Purpose::shuffle, 0, 0, 0);
  constexpr int n = 70000;
  std::array<int, 7> cells{};
  for (std::uint64_t i = 0; i < n; ++i) ++cells[to_below(random_bits(key, i), 7)];
  for (const int count : cells) EXPECT_NEAR(count, n / 7, 5 * std::sqrt(n * 6.0 / 49));
}

}  // namespace
}  // namespace trireme
