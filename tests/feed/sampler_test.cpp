// Every sample once in each epoch, the same on every machine, whatever was asked for before.
#include "io/feed/sampler.h"

#include <algorithm>
#include <set>

#include "core/base/digest.h"
#include "io/dataset/reader.h"
#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

std::vector<std::int64_t> line(Sampler& sampler, std::uint64_t first, std::uint64_t count) {
  std::vector<std::int64_t> samples;
  for (std::uint64_t p = first; p < first + count; ++p) samples.push_back(sampler.sample(p));
  return samples;
}

void expect_each_once(std::vector<std::int64_t> samples, std::int64_t count) {
  ASSERT_EQ(static_cast<std::int64_t>(samples.size()), count);
  std::sort(samples.begin(), samples.end());
  for (std::int64_t s = 0; s < count; ++s) ASSERT_EQ(samples[static_cast<std::size_t>(s)], s);
}

// 23,456 samples in files of unequal length; blocks of 5,000 rows, the last of each file shorter.
Dataset three_files(const Folder& folder) {
  test::write_samples(folder / "a.h5", 0, 12001, {5000});
  test::write_samples(folder / "b.h5", 12001, 1, {5000});
  test::write_samples(folder / "c.h5", 12002, 11454, {5000});
  return test::open_samples({folder / "*.h5"});
}

TEST(Sampler, EverySampleOnceInEachEpochWhateverTheShuffle) {
  const Folder folder;
  const Dataset data = three_files(folder);
  const auto n = static_cast<std::uint64_t>(data.samples());
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::block, Shuffle::none}) {
    Sampler sampler(data, 1, shuffle, 2);
    EXPECT_EQ(sampler.samples(), data.samples());
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) expect_each_once(line(sampler, epoch * n, n), data.samples());
  }
}

TEST(Sampler, MemoryOfItsOrder) {
  EXPECT_EQ(order_bytes(1000, Shuffle::global), 8000u);  // two permutations of 4 bytes each
  EXPECT_EQ(order_bytes((std::int64_t{1} << 32) - 1, Shuffle::global), ((std::uint64_t{1} << 32) - 1) * 8);
  EXPECT_EQ(order_bytes(std::int64_t{1} << 32, Shuffle::global), std::uint64_t{1} << 36);  // 16 bytes
  EXPECT_EQ(order_bytes(2000000000, Shuffle::block), 0u);
}

TEST(Sampler, FirstEpochIsAFixedVector) {
  // From an independent program (Philox and Fisher-Yates written in Python).
  const Folder folder;
  test::write_samples(folder / "a.h5", 0, 10);
  const Dataset ten = test::open_samples({folder / "a.h5"});
  Sampler small(ten, 1, Shuffle::global, 1);
  EXPECT_EQ(line(small, 0, 10), (std::vector<std::int64_t>{7, 6, 1, 9, 3, 5, 8, 0, 4, 2}));
  EXPECT_EQ(line(small, 10, 10), (std::vector<std::int64_t>{4, 8, 6, 3, 1, 0, 5, 7, 9, 2}));
  Sampler same(ten, 1, Shuffle::none, 1);
  EXPECT_EQ(line(same, 8, 4), (std::vector<std::int64_t>{8, 9, 0, 1}));
}

TEST(Sampler, IsAPureFunctionOfSeedAndPosition) {
  const Folder folder;
  const Dataset data = three_files(folder);
  const auto n = static_cast<std::uint64_t>(data.samples());
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::block}) {
    Sampler forward(data, 5, shuffle, 2), jumping(data, 5, shuffle, 2);
    const std::vector<std::int64_t> expected = line(forward, 0, 4 * n);
    // Back and forth, over epochs and windows, with a step that is no divisor of anything here.
    for (std::uint64_t i = 0, p = 0; i < 200; ++i, p = (p + 17389) % (4 * n))
      ASSERT_EQ(jumping.sample(p), expected[p]) << p;
    // Batches that straddle an epoch.
    EXPECT_EQ(line(jumping, n - 3, 7),
              std::vector<std::int64_t>(expected.begin() + static_cast<std::ptrdiff_t>(n - 3),
                                        expected.begin() + static_cast<std::ptrdiff_t>(n + 4)));
  }
}

// Places at which two lines agree: for independent permutations about 1 (Poisson), so 10 is a mistake.
TEST(Sampler, SeedsAndEpochsAreIndependent) {
  const Folder folder;
  const Dataset data = three_files(folder);
  const auto n = static_cast<std::uint64_t>(data.samples());
  Sampler one(data, 1, Shuffle::global, 1), two(data, 2, Shuffle::global, 1),
      far(data, 1 + (std::uint64_t{1} << 32), Shuffle::global, 1);
  const auto first = line(one, 0, n);
  for (const auto& other : {line(one, n, n), line(one, 2 * n, n), line(two, 0, n), line(far, 0, n)}) {
    int equal = 0;
    for (std::size_t i = 0; i < n; ++i) equal += first[i] == other[i];
    EXPECT_LT(equal, 10);
  }
}

TEST(Sampler, BlockShuffleNeedsEachChunkOnceAWindow) {
  const Folder folder;
  const Dataset data = three_files(folder);
  const auto n = static_cast<std::uint64_t>(data.samples());
  Sampler sampler(data, 1, Shuffle::block, 2);
  const auto chunk_of = [&](std::int64_t sample) {
    const DataFile& file = data.file_of(sample);
    return std::pair(file.first_sample, (sample - file.first_sample) / data.block_rows(file));
  };
  // 3 + 1 + 3 chunks in windows of 2: a window's samples come from 2 chunks, and all of them.
  std::set<std::pair<std::int64_t, std::int64_t>> met;
  std::set<std::pair<std::int64_t, std::int64_t>> window;
  std::size_t mixed = 0;
  for (std::uint64_t p = 0; p < n; ++p) {
    const auto chunk = chunk_of(sampler.sample(p));
    if (window.size() == 2 && !window.contains(chunk)) {
      window.clear();
    }
    if (p > 0) mixed += chunk != chunk_of(sampler.sample(p - 1));
    window.insert(chunk);
    ASSERT_TRUE(met.insert(chunk).second || window.contains(chunk)) << "a chunk comes back after its window";
  }
  EXPECT_EQ(met.size(), 7u);
  EXPECT_GT(mixed, n / 8) << "rows of a window are not mixed";
  // So a cache with room for one window and the next reads each chunk once.
  BlockCache cache(data, make_hdf5_reader(data), 4 * 5000 * 14);
  for (std::uint64_t p = 0; p < n; ++p) static_cast<void>(cache.with_sample(sampler.sample(p)));
  EXPECT_EQ(cache.blocks_read(), 7u);
}

}  // namespace
}  // namespace trireme::io
