// Permutations against values computed by an independent program (Philox and Fisher-Yates written in Python).
#include "io/dataset/permutation.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/digest.h"
#include "gtest/gtest.h"

namespace trireme::io {
namespace {

template <class Index>
std::vector<Index> permuted(std::size_t count, const RandomKey& key) {
  std::vector<Index> items(count);
  std::iota(items.begin(), items.end(), Index{0});
  permute(std::span(items), key);
  return items;
}

TEST(Permutation, FixedValues) {
  EXPECT_EQ(permuted<std::uint32_t>(10, shuffle_key(1, 0, Shuffled::samples)),
            (std::vector<std::uint32_t>{7, 6, 1, 9, 3, 5, 8, 0, 4, 2}));
  Sha256 digest;
  digest.add(bytes_of(permuted<std::uint32_t>(60000, shuffle_key(7, 3, Shuffled::samples))));
  EXPECT_EQ(digest.hex(), "3a336277ed5c90c6302410a918894c3a8b37281e6db801375e28ec59246ccba5");
}

TEST(Permutation, IsAPermutationWhateverTheIndexType) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1001}}) {
    const auto narrow = permuted<std::uint32_t>(count, shuffle_key(3, 5, Shuffled::chunks));
    const auto wide = permuted<std::uint64_t>(count, shuffle_key(3, 5, Shuffled::chunks));
    EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), wide.begin(), wide.end()));
    auto sorted = narrow;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(sorted[i], i);
  }
}

TEST(Permutation, EveryPlaceIsEquallyLikely) {
  // 20,000 permutations of 5: each element in each place 4,000 times; standard deviation 56.6, so 6 of them.
  std::vector<std::vector<int>> counts(5, std::vector<int>(5));
  for (std::uint64_t epoch = 0; epoch < 20000; ++epoch) {
    const auto items = permuted<std::uint32_t>(5, shuffle_key(11, epoch, Shuffled::samples));
    for (std::size_t place = 0; place < 5; ++place) ++counts[place][items[place]];
  }
  for (const auto& place : counts) {
    for (const int count : place) EXPECT_NEAR(count, 4000, 340);
  }
}

}  // namespace
}  // namespace trireme::io
