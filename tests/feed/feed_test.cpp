// The samples of every micro-batch: the same for any number of ranks, after a resume, over epochs and files.
#include "io/feed/feed.h"

#include "tests/feed/feeds.h"

namespace trireme::io {
namespace {

using test::FeedSetup;
using test::sequence_of;
using test::take_all;
using test::Taken;
using test::values_of;

class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    test::write_samples(folder_ / "a.h5", 0, 61, {16, 1, true, true});
    test::write_samples(folder_ / "b.h5", 61, 1);
    test::write_samples(folder_ / "c.h5", 62, 38, {7});
    setup_.data = std::make_shared<Dataset>(test::open_samples({folder_ / "*.h5"}));
    setup_.options.max_rows = 32;
  }

  Folder folder_;
  FeedSetup setup_;
  std::shared_ptr<device::Device> device_ = device::make_cpu();
  device::Stream stream_ = device_->compute_stream();
};

TEST_F(FeedTest, EveryBatchHoldsTheSamplersSamples) {
  for (const Shuffle shuffle : {Shuffle::global, Shuffle::block, Shuffle::none}) {
    setup_.shuffle = shuffle;
    Sampler sampler(*setup_.data, setup_.seed, shuffle, setup_.window);
    const auto feed = setup_.make(sequence_of(32, 2, 0, 1, 0, 8));  // 256 positions: two epochs and a half
    const std::vector<Taken> taken = take_all(*feed, stream_);
    ASSERT_EQ(taken.size(), 16u);
    std::uint64_t position = 0;
    for (const Taken& batch : taken) {
      EXPECT_EQ(batch.at.first, position);
      ASSERT_EQ(batch.fields[0].size(), 16u * 6);
      const auto labels = values_of<std::int64_t>(batch.fields[1]);
      for (std::size_t row = 0; row < 16; ++row, ++position) {
        const std::int64_t sample = sampler.sample(position);
        ASSERT_EQ(values_of<std::uint8_t>(std::span(batch.fields[0]).subspan(row * 6, 6)), test::image(sample));
        ASSERT_EQ(labels[row], test::label(sample));
      }
    }
  }
}

TEST_F(FeedTest, MicroBatchesAreTheSameForAnyNumberOfRanks) {
  setup_.transforms = {"image: pad-crop 1", "image: flip", "image: scale 1/255"};
  const auto whole = setup_.make(sequence_of(32, 4, 0, 1, 0, 7));
  const std::vector<Taken> expected = take_all(*whole, stream_);
  ASSERT_EQ(expected.size(), 28u);
  for (const std::uint64_t world : {2u, 4u}) {
    const std::uint64_t here = 4 / world;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      const auto feed = setup_.make(sequence_of(32, 4, rank, world, 0, 7));
      const std::vector<Taken> part = take_all(*feed, stream_);
      ASSERT_EQ(part.size(), 7 * here);
      for (std::size_t k = 0; k < part.size(); ++k) {
        EXPECT_EQ(part[k], expected[k / here * 4 + rank * here + k % here]) << "rank " << rank << " of " << world;
      }
    }
  }
}

TEST_F(FeedTest, AResumeGoesOnWithTheVeryNextSamples) {
  setup_.transforms = {"image: flip"};
  const auto whole = setup_.make(sequence_of(32, 2, 0, 1, 0, 12));
  const std::vector<Taken> expected = take_all(*whole, stream_);
  for (const std::uint64_t step : {1u, 3u, 4u, 11u}) {
    const auto resumed = setup_.make(sequence_of(32, 2, 0, 1, step, 12));
    const std::vector<Taken> rest = take_all(*resumed, stream_);
    EXPECT_EQ(rest, std::vector<Taken>(expected.begin() + static_cast<std::ptrdiff_t>(2 * step), expected.end()));
  }
}

TEST_F(FeedTest, FixedSlotsTakeTurnsAndShortBatchesHaveTheirShape) {
  // An evaluation: 228 samples in rounds of 32, the last has 4.
  setup_.shuffle = Shuffle::none;
  const auto feed = setup_.make([](std::uint64_t k) -> std::optional<MicroBatch> {
    if (k == 8) return std::nullopt;
    return MicroBatch{k * 32, k == 7 ? 4 : 32};
  });
  std::vector<const void*> addresses;
  for (std::uint32_t k = 0; k < 8; ++k) {
    const auto batch = feed->next(stream_);
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->slot, k % 4);
    ASSERT_EQ(batch->fields.size(), 2u);
    EXPECT_EQ(batch->fields[0].shape, Shape({k == 7 ? 4 : 32, 2, 3}));
    EXPECT_EQ(batch->fields[1].shape, Shape({k == 7 ? 4 : 32}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch->fields[1].data) % 64, 0u);
    addresses.push_back(batch->fields[0].data);
    feed->release(*batch, stream_);
  }
  for (std::size_t k = 0; k < 4; ++k) {  // four slots on the CPU
    EXPECT_EQ(addresses[k], addresses[k + 4]);
    for (std::size_t other = 0; other < k; ++other) EXPECT_NE(addresses[k], addresses[other]);
  }
  EXPECT_FALSE(feed->next(stream_));
  EXPECT_FALSE(feed->next(stream_));
}

TEST_F(FeedTest, ABatchStaysUntilItIsReleased) {
  setup_.shuffle = Shuffle::none;
  const auto feed = setup_.make(sequence_of(32, 2, 0, 1, 0, 8));
  const auto first = feed->next(stream_);
  const auto second = feed->next(stream_);
  ASSERT_TRUE(first && second);
  const Taken before = test::bytes_of_batch(*first);
  test::expect_error(ExitCode::internal, {"micro-batch 2", "before micro-batch 0 was released"},
                     [&] { static_cast<void>(feed->next(stream_)); });
  test::expect_error(ExitCode::internal, {"slot 1 released out of turn"}, [&] { feed->release(*second, stream_); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the reader is far ahead by now
  EXPECT_EQ(test::bytes_of_batch(*first), before);
  feed->release(*first, stream_);
  const auto third = feed->next(stream_);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->at.first, 32u);
  EXPECT_EQ(values_of<std::uint8_t>(std::span(test::bytes_of_batch(*third).fields[0]).first(6)), test::image(32));
}

TEST_F(FeedTest, AMicroBatchReadsNoBlockTwice) {
  setup_.options.memory_bytes = 0;  // one block at a time
  const auto feed = setup_.make(sequence_of(32, 1, 0, 1, 0, 3));
  take_all(*feed, stream_);
  std::uint64_t blocks = 0;
  for (const DataFile& file : setup_.data->files()) {
    const std::int64_t rows = setup_.data->block_rows(file);
    blocks += static_cast<std::uint64_t>((file.samples + rows - 1) / rows);
  }
  EXPECT_LE(feed->blocks_read(), 3 * blocks);
}

TEST_F(FeedTest, WhatFitsIsReadOnce) {
  const auto feed = setup_.make(sequence_of(32, 1, 0, 1, 0, 25));  // eight epochs
  take_all(*feed, stream_);
  EXPECT_EQ(feed->blocks_read(), 3u);  // a file each: their chunks are tiny
}

}  // namespace
}  // namespace trireme::io
