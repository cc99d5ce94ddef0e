// Blocks hold the rows they say, the cache keeps what fits, errors name rows.
#include "io/dataset/reader.h"

#include <fcntl.h>

#include <algorithm>
#include <set>

#include "core/base/file.h"
#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::open_samples;
using test::values_of;
using test::write_samples;

void expect_sample(const Dataset& data, const Block& block, std::int64_t sample) {
  const DataFile& file = data.file_of(sample);
  EXPECT_EQ(&data.files()[block.file], &file);
  const std::int64_t row = sample - file.first_sample - block.first;
  ASSERT_GE(row, 0);
  ASSERT_LT(row, block.rows);
  const auto pixels = values_of<std::uint8_t>(std::span(block.fields[0]).subspan(static_cast<std::size_t>(row) * 6, 6));
  EXPECT_EQ(pixels, test::image(sample)) << sample;
  EXPECT_EQ(values_of<std::int64_t>(block.fields[1])[static_cast<std::size_t>(row)], test::label(sample));
}

// Chunks of 5,000 rows are a block (70 kB) each.
Dataset chunked_files(const Folder& folder) {
  write_samples(folder / "a.h5", 0, 12000, {5000, 1, true, true});
  write_samples(folder / "b.h5", 12000, 3, {5000});
  write_samples(folder / "c.h5", 12003, 5001, {5000});
  return open_samples({folder / "*.h5"});
}

TEST(BlockCache, EverySampleHasItsValues) {
  const Folder folder;
  const Dataset data = chunked_files(folder);
  BlockCache cache(data, make_hdf5_reader(data), std::uint64_t{1} << 30);
  for (std::int64_t s = 0; s < data.samples(); s += 7) expect_sample(data, cache.with_sample(s), s);
  for (const std::int64_t s : {0, 4999, 5000, 11999, 12000, 12002, 12003, 17002, 17003}) {
    expect_sample(data, cache.with_sample(s), s);
  }
  EXPECT_EQ(cache.blocks_read(), 6u);  // 3 + 1 + 2, each once
}

TEST(BlockCache, KeepsTheLatestWithinItsBudget) {
  const Folder folder;
  const Dataset data = chunked_files(folder);
  BlockCache cache(data, make_hdf5_reader(data), 2 * 5000 * 14);
  const auto reads_after = [&](std::int64_t sample) {
    expect_sample(data, cache.with_sample(sample), sample);
    return cache.blocks_read();
  };
  EXPECT_EQ(reads_after(0), 1u);
  EXPECT_EQ(reads_after(5000), 2u);
  EXPECT_EQ(reads_after(1), 2u);      // kept, and now the latest
  EXPECT_EQ(reads_after(12003), 3u);  // takes the place of 5000
  EXPECT_EQ(reads_after(2), 3u);
  EXPECT_EQ(reads_after(5001), 4u);
  EXPECT_EQ(reads_after(3), 4u);
  EXPECT_EQ(reads_after(12004), 5u);
}

TEST(BlockCache, UsesTheMemoryOfDroppedBlocks) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 40000, {5000});
  const Dataset data = open_samples({folder / "a.h5"});
  BlockCache cache(data, make_hdf5_reader(data), 2 * 5000 * 14);
  std::set<const std::byte*> places;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t s = 0; s < 40000; s += 5000) places.insert(cache.with_sample(s).fields[0].data());
  }
  EXPECT_EQ(places.size(), 2u);
  EXPECT_EQ(cache.blocks_read(), 24u);
}

TEST(BlockCache, OneBlockIsReadHoweverSmallTheBudget) {
  const Folder folder;
  const Dataset data = chunked_files(folder);
  BlockCache cache(data, make_hdf5_reader(data), 0);
  for (const std::int64_t s : {0, 1, 12000, 5000, 0}) expect_sample(data, cache.with_sample(s), s);
  EXPECT_EQ(cache.blocks_read(), 4u);
}

TEST(Reader, FilesOfOneSample) {
  const Folder folder;
  for (int i = 0; i < 80; ++i) {  // more than are kept open
    const auto file = Hdf5File::create(folder.path() / fmt::format("s{:02}.h5", i));
    file->create_dataset("/image", Shape({2, 3}), Dtype::u8, {});
    file->create_dataset("/label", Shape(), Dtype::i64, {});
    const auto pixels = test::image(i);
    const std::int64_t label = test::label(i);
    file->write("/image", 0, 2, Dtype::u8, std::as_bytes(std::span(pixels)));
    file->write("/label", 0, 1, Dtype::i64, std::as_bytes(std::span(&label, 1)));
    file->close();
  }
  const Dataset data = open_samples({folder / "s*.h5"});
  BlockCache cache(data, make_hdf5_reader(data), 0);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t s = 0; s < 80; ++s) expect_sample(data, cache.with_sample(s), s);
  }
}

TEST(Reader, DamageAndChangeAreNamed) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 20000, {5000, 0, false, true});
  write_samples(folder / "b.h5", 20000, 10, {});
  const Dataset data = open_samples({folder / "*.h5"});
  {
    // Chunks follow each other: damage one of the last of /image.
    File raw(folder / "a.h5", O_RDWR);
    const std::vector<std::byte> bytes = [&] {
      std::vector<std::byte> all(data.files()[0].bytes);
      raw.read_at(all, 0);
      return all;
    }();
    const auto wanted = test::image(15000);
    const auto at = std::search(bytes.begin(), bytes.end(), reinterpret_cast<const std::byte*>(wanted.data()),
                                reinterpret_cast<const std::byte*>(wanted.data()) + wanted.size());
    ASSERT_NE(at, bytes.end());
    const std::byte damaged = ~*at;
    raw.write_at(std::span(&damaged, 1), static_cast<std::uint64_t>(at - bytes.begin()));
  }
  const auto reader = make_hdf5_reader(data);
  Block block;
  std::vector<int> failed;
  for (int chunk = 0; chunk < 4; ++chunk) {
    try {
      reader->read(0, chunk * 5000, 5000, block);
    } catch (const Error& error) {
      failed.push_back(chunk);
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr("a.h5:/image"), testing::HasSubstr("checksum"),
                                 testing::HasSubstr(fmt::format("rows {} to {}", chunk * 5000, (chunk + 1) * 5000))));
    }
  }
  EXPECT_EQ(failed.size(), 1u);
  std::filesystem::resize_file(folder / "b.h5", data.files()[1].bytes - 1);
  expect_error(ExitCode::data, {"b.h5", "must not change"}, [&] { reader->read(1, 0, 10, block); });
  std::filesystem::remove(folder / "b.h5");
  expect_error(ExitCode::data, {"b.h5", "no such file"}, [&] { reader->read(1, 0, 10, block); });
}

TEST(Reader, ReadsOfABlockUnderAGlobalShuffle) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 50000, {5000});
  const Dataset data = open_samples({folder / "a.h5"});  // 700 kB in 10 blocks
  EXPECT_EQ(reads_of_a_block(data, 700000), 1);
  EXPECT_DOUBLE_EQ(reads_of_a_block(data, 350000), 50000 * 0.5 / 10);
  EXPECT_DOUBLE_EQ(reads_of_a_block(data, 0), 5000);
  EXPECT_EQ(reads_of_a_block(data, 699999), 1);
}

}  // namespace
}  // namespace trireme::io
