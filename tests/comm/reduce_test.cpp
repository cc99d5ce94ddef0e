// Sums over ranks: bit by bit the binary tree over leaves, whatever the number of ranks; and the library's own sum.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/range.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "tests/comm/ranks.h"

namespace trireme::comm {
namespace {

constexpr std::size_t leaves = 4;
// Less than a tile, one, a few (fewer than ranks, uneven halves), many; not multiples.
const std::size_t sizes[] = {0, 1, 5, 100, 4095, 4096, 4097, 2 * 4096 + 1, 3 * 4096, 5 * 4096 + 17, 64 * 4096, 301'234};

bool power_of_two() { return std::has_single_bit(static_cast<unsigned>(world().size())); }

// Values of magnitudes so different that another order of additions gives other bits.
std::vector<float> leaf(std::size_t which, std::size_t size) {
  const RandomKey key = random_key(5, Purpose::model, which, 0, 0);
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t bits = random_bits(key, i);
    values[i] = std::ldexp(to_uniform(bits) - 0.5f, static_cast<int>(bits % 12));
  }
  return values;
}

template <class T>
std::vector<T> sum(const std::vector<T>& left, const std::vector<T>& right) {
  std::vector<T> result(left.size());
  for (std::size_t i = 0; i < left.size(); ++i) result[i] = left[i] + right[i];
  return result;
}

// The tree over leaves [begin, end), a power of two of them.
std::vector<float> tree(std::size_t begin, std::size_t end, std::size_t size) {
  if (end - begin == 1) return leaf(begin, size);
  const std::size_t middle = (begin + end) / 2;
  return sum(tree(begin, middle, size), tree(middle, end, size));
}

std::vector<double> squares_of(const std::vector<float>& values) {
  std::vector<double> squares(tiles_of(values.size()));
  const auto device = device::make_cpu();
  device::Stream stream = device->compute_stream();
  device->kernels().tile_squares(values, squares, stream);
  return squares;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

TEST(TreeReduce, IsOneTreeOverTheLeavesOnEveryNumberOfRanks) {
  if (!power_of_two()) return;
  const auto ranks = static_cast<std::size_t>(world().size()), rank = static_cast<std::size_t>(world().rank());
  for (const std::size_t size : sizes) {
    const std::size_t each = leaves / ranks;
    std::vector<float> data = tree(rank * each, (rank + 1) * each, size);
    std::vector<double> squares(tiles_of(size), -1.0);
    world().tree_reduce(data, squares).synchronize();
    const std::vector<float> expected = tree(0, leaves, size);
    EXPECT_TRUE(same_bits(data, expected)) << size;
    // One rank adds nothing, so takes no squares.
    EXPECT_TRUE(same_bits(squares, ranks == 1 ? std::vector<double>(tiles_of(size), -1.0) : squares_of(expected)))
        << size;
    std::vector<float> again = tree(rank * each, (rank + 1) * each, size);
    world().tree_reduce(again, {}).synchronize();
    EXPECT_TRUE(same_bits(again, expected)) << size;
  }
}

TEST(TreeReduce, TheLeavesTellOneOrderFromAnother) {
  const std::vector<float> tree_order = tree(0, leaves, 5000);
  std::vector<float> in_turn = leaf(0, 5000);
  for (std::size_t i = 1; i < leaves; ++i) in_turn = sum(in_turn, leaf(i, 5000));
  EXPECT_FALSE(same_bits(tree_order, in_turn));
}

TEST(TreeReduce, NonFiniteValuesReachEveryRank) {
  if (!power_of_two() || world().size() == 1) return;
  std::vector<float> data(3 * tile_elements, 1.0f);
  std::vector<double> squares(3);
  if (world().rank() == world().size() - 1) data[5000] = std::numeric_limits<float>::quiet_NaN();
  world().tree_reduce(data, squares).synchronize();
  EXPECT_TRUE(std::isnan(data[5000]));
  EXPECT_TRUE(std::isnan(squares[1]));
  EXPECT_EQ(squares[0], 4096.0 * world().size() * world().size());
}

TEST(TreeReduce, Scalars) {
  if (!power_of_two()) return;
  const auto ranks = static_cast<std::size_t>(world().size()), rank = static_cast<std::size_t>(world().rank());
  const auto values = [](std::size_t which) {
    std::vector<double> some{1e17 * static_cast<double>(which), 0.1};
    for (int k = 1; k <= 64; ++k)
      some.push_back(std::sin(static_cast<double>(which * 64 + static_cast<std::size_t>(k))));
    return some;
  };
  // Of 64 such sums some round otherwise in another order, so the tree is told from a swapped one.
  const auto in_order = sum(sum(values(0), values(1)), sum(values(2), values(3)));
  EXPECT_FALSE(same_bits(in_order, sum(sum(values(0), values(2)), sum(values(1), values(3)))));
  std::vector<std::vector<double>> level;
  for (std::size_t r = 0; r < ranks; ++r) level.push_back(values(r));
  while (level.size() > 1) {
    std::vector<std::vector<double>> next;
    for (std::size_t i = 0; i < level.size(); i += 2) next.push_back(sum(level[i], level[i + 1]));
    level = next;
  }
  std::vector<double> data = values(rank);
  world().tree_reduce(data).synchronize();
  EXPECT_TRUE(same_bits(data, level[0]));
}

TEST(TreeReduce, ManyBucketsOverlapTheWorkOfTheRank) {
  if (!power_of_two()) return;
  constexpr std::size_t buckets = 40, size = 3 * tile_elements;
  std::vector<float> arena(buckets * size);
  std::vector<double> squares(buckets * 3);
  std::vector<device::Event> events;
  double work = 0;
  for (std::size_t b = 0; b < buckets; ++b) {
    for (std::size_t i = 0; i < size; ++i) arena[b * size + i] = static_cast<float>(b + 1);
    events.push_back(
        world().tree_reduce(std::span(arena).subspan(b * size, size), std::span(squares).subspan(b * 3, 3)));
    for (int i = 0; i < 2000; ++i) work += std::sqrt(static_cast<double>(i));
  }
  for (const device::Event& event : events) event.synchronize();
  EXPECT_GT(work, 0.0);
  for (std::size_t b = 0; b < buckets; ++b) {
    const float expected = static_cast<float>(b + 1) * static_cast<float>(world().size());
    EXPECT_EQ(arena[b * size], expected);
    EXPECT_EQ(arena[(b + 1) * size - 1], expected);
  }
  EXPECT_TRUE(
      std::is_sorted(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.time() < b.time(); }));
}

TEST(TreeReduce, WrongNumberOfSquaresIsRefused) {
  std::vector<float> data(5000);
  std::vector<double> squares(3);
  EXPECT_THROW(world().tree_reduce(data, squares), Error);
}

TEST(AllReduce, SumsOnAnyNumberOfRanks) {
  const auto ranks = static_cast<std::size_t>(world().size()), rank = static_cast<std::size_t>(world().rank());
  constexpr std::size_t size = 70'001;
  std::vector<double> expected(size), wide(size);
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::vector<float> values = leaf(r, size);
    for (std::size_t i = 0; i < size; ++i) expected[i] += static_cast<double>(values[i]);
  }
  std::vector<float> data = leaf(rank, size);
  for (std::size_t i = 0; i < size; ++i) wide[i] = static_cast<double>(data[i]);
  world().all_reduce(std::span<float>(data)).synchronize();
  world().all_reduce(std::span<double>(wide)).synchronize();
  double worst = 0, worst_wide = 0;
  for (std::size_t i = 0; i < size; ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(data[i]) - expected[i]));
    worst_wide = std::max(worst_wide, std::abs(wide[i] - expected[i]));
  }
  // Values below 2^10 each: three roundings to 24 bits of sums below 2^12; sums of f32 in f64 are exact here.
  EXPECT_LT(worst, 3 * std::ldexp(1.0, 12 - 24));
  EXPECT_EQ(worst_wide, 0.0);
}

}  // namespace
}  // namespace trireme::comm
