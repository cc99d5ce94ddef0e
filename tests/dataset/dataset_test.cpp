// Which samples a dataset has: order of files, rows, kinds of files, text and identity.
#include "io/dataset/dataset.h"

#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::open_samples;
using test::write_samples;

std::vector<std::string> names(const Dataset& data) {
  std::vector<std::string> all;
  for (const DataFile& file : data.files()) all.push_back(file.path.filename().string());
  return all;
}

TEST(Dataset, FilesComeInOrderOfPatternsThenNames) {
  const Folder folder;
  write_samples(folder / "b-10.h5", 0, 3);
  write_samples(folder / "b-2.h5", 0, 5);
  write_samples(folder / "B-3.h5", 0, 1);
  write_samples(folder / "a.h5", 0, 2);
  const Dataset data = open_samples({folder / "[bB]-*.h5", folder / "a.h5"});
  EXPECT_EQ(names(data), (std::vector<std::string>{"B-3.h5", "b-10.h5", "b-2.h5", "a.h5"}));
  EXPECT_EQ(data.samples(), 11);
  std::vector<std::int64_t> firsts;
  for (const DataFile& file : data.files()) firsts.push_back(file.first_sample);
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 1, 4, 9}));
  EXPECT_EQ(data.file_of(0).path.filename(), "B-3.h5");
  EXPECT_EQ(data.file_of(3).path.filename(), "b-10.h5");
  EXPECT_EQ(data.file_of(4).path.filename(), "b-2.h5");
  EXPECT_EQ(data.file_of(10).path.filename(), "a.h5");
  test::expect_error(ExitCode::internal, {"sample 11", "have 11"}, [&] { static_cast<void>(data.file_of(11)); });
}

TEST(Dataset, FieldsComeInNameOrderWithSampleShapes) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 4);
  const std::vector<std::filesystem::path> files = {folder / "a.h5"};
  const Dataset data = Dataset::open(files, {{"y", "label"}, {"picture", "/image"}});
  ASSERT_EQ(data.fields().size(), 2u);
  EXPECT_EQ(data.fields()[0], (Field{"picture", Shape({2, 3}), Dtype::u8}));
  EXPECT_EQ(data.fields()[1], (Field{"y", Shape(), Dtype::i64}));
  EXPECT_EQ(data.decoded_bytes(), 4u * (6 + 8));
  EXPECT_FALSE(data.one_sample_files());
}

TEST(Dataset, BracketsInAnExistingNameAreTakenLiterally) {
  const Folder folder;
  write_samples(folder / "run[1].h5", 0, 2);
  write_samples(folder / "run1.h5", 0, 3);
  EXPECT_EQ(names(open_samples({folder / "run[1].h5"})), (std::vector<std::string>{"run[1].h5"}));
  EXPECT_EQ(names(open_samples({folder / "run[1-9].h5"})), (std::vector<std::string>{"run1.h5"}));
}

TEST(Dataset, EmptyFilesAreSteppedOver) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 2);
  write_samples(folder / "b.h5", 2, 0);
  write_samples(folder / "c.h5", 2, 2);
  const Dataset data = open_samples({folder / "*.h5"});
  EXPECT_EQ(data.samples(), 4);
  EXPECT_EQ(data.file_of(2).path.filename(), "c.h5");
}

void write_one_sample(const std::filesystem::path& path, std::int64_t label) {
  const auto file = Hdf5File::create(path);
  file->create_dataset("/climate/data", Shape({3, 4}), Dtype::f32, {});
  file->create_dataset("/climate/label", Shape(), Dtype::i32, {});
  file->create_dataset("/climate/mask", Shape({3}), Dtype::u8, {});
  const auto value = static_cast<std::int32_t>(label);
  file->write("/climate/label", 0, 1, Dtype::i32, std::as_bytes(std::span(&value, 1)));
  file->close();
}

TEST(Dataset, FilesOfOneSampleAreTakenSo) {
  const Folder folder;
  for (int i = 0; i < 3; ++i) write_one_sample(folder.path() / fmt::format("s{}.h5", i), i);
  const std::vector<std::filesystem::path> files = {folder / "s*.h5"};
  // A scalar tells.
  const Dataset scalar = Dataset::open(files, {{"data", "/climate/data"}, {"label", "/climate/label"}});
  EXPECT_TRUE(scalar.one_sample_files());
  EXPECT_EQ(scalar.samples(), 3);
  EXPECT_EQ(scalar.fields()[0], (Field{"data", Shape({3, 4}), Dtype::f32}));
  EXPECT_EQ(scalar.fields()[1], (Field{"label", Shape(), Dtype::i32}));
  EXPECT_EQ(scalar.block_rows(scalar.files()[0]), 1);
  // Without one the job says it: (3, 4) and (3) could be three samples.
  const Dataset rows = Dataset::open(files, {{"data", "/climate/data"}, {"mask", "/climate/mask"}});
  EXPECT_EQ(rows.samples(), 9);
  const Dataset marked = Dataset::open(files, {{"data", "/climate/data[sample]"}, {"mask", "/climate/mask"}});
  EXPECT_EQ(marked.samples(), 3);
  EXPECT_EQ(marked.fields()[1].shape, Shape({3}));
  EXPECT_EQ(Dataset::from_text(marked.text()).text(), marked.text());
}

TEST(Dataset, TextGivesTheSameDataset) {
  const Folder folder;
  std::filesystem::create_directory(folder / "with blank %");
  write_samples(folder.path() / "with blank %" / "a\xff.h5", 0, 3, {2, 4, true, true});
  write_samples(folder / "b.h5", 3, 5);
  write_samples(folder / "c.h5", 8, 1);
  const Dataset data = open_samples({folder / "with blank %/*", folder / "*.h5"});
  const Dataset copy = Dataset::from_text(data.text());
  EXPECT_EQ(copy.text(), data.text());
  EXPECT_EQ(copy.identity(), data.identity());
  EXPECT_EQ(copy.samples(), 9);
  ASSERT_EQ(copy.fields().size(), data.fields().size());
  for (std::size_t i = 0; i < copy.fields().size(); ++i) EXPECT_EQ(copy.fields()[i], data.fields()[i]);
  ASSERT_EQ(copy.files().size(), 3u);
  for (std::size_t f = 0; f < 3; ++f) {
    EXPECT_EQ(copy.files()[f].path, data.files()[f].path);
    EXPECT_EQ(copy.files()[f].first_sample, data.files()[f].first_sample);
    EXPECT_EQ(copy.files()[f].bytes, data.files()[f].bytes);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(copy.files()[f].fields[i].shape, data.files()[f].fields[i].shape);
      EXPECT_EQ(copy.files()[f].fields[i].filters, data.files()[f].fields[i].filters);
      EXPECT_EQ(copy.files()[f].fields[i].stored_type, data.files()[f].fields[i].stored_type);
      EXPECT_EQ(copy.files()[f].fields[i].chunk_rows, data.files()[f].fields[i].chunk_rows);
    }
  }
  const std::string text = data.text();
  for (const std::size_t cut : {std::size_t{0}, std::size_t{5}, text.size() / 2, text.size() - 2}) {
    EXPECT_THROW(static_cast<void>(Dataset::from_text(text.substr(0, cut))), Error) << cut;
  }
}

TEST(Dataset, IdentityIgnoresPathsAndSeesContent) {
  const Folder folder;
  for (const char* place : {"one", "two", "more", "renamed"}) std::filesystem::create_directory(folder / place);
  write_samples(folder / "one/a.h5", 0, 4);
  write_samples(folder / "two/a.h5", 0, 4);
  write_samples(folder / "more/a.h5", 0, 5);
  write_samples(folder / "renamed/b.h5", 0, 4);
  const std::string identity = open_samples({folder / "one/a.h5"}).identity();
  EXPECT_EQ(open_samples({folder / "two/*.h5"}).identity(), identity);
  EXPECT_NE(open_samples({folder / "more/a.h5"}).identity(), identity);
  EXPECT_NE(open_samples({folder / "renamed/b.h5"}).identity(), identity);
  EXPECT_THAT(identity, testing::HasSubstr("4 samples"));
}

TEST(Dataset, BlocksAreChunksOfTheHeaviestField) {
  const Folder folder;
  const std::filesystem::path path = folder / "c.h5";
  const auto write = [&](std::int64_t rows, const Shape& sample, std::int64_t chunk) {
    const auto file = Hdf5File::create(path);
    file->create_dataset("/image", sample.batched(rows), Dtype::u8, {chunk});
    file->create_dataset("/label", Shape({rows}), Dtype::i64, {rows});
    file->close();
    const Dataset data = open_samples({path});
    return data.block_rows(data.files()[0]);
  };
  EXPECT_EQ(write(1000, Shape({64, 64}), 32), 32);                // 128 KiB: a chunk
  EXPECT_EQ(write(1000, Shape({16, 16}), 32), 32 * 8);            // 264 B a row: eight chunks make 64 KiB
  EXPECT_EQ(write(100, Shape({16, 16}), 32), 100);                // no more than the file has
  EXPECT_EQ(write(10000, Shape({64, 64}), 0), (1 << 20) / 4104);  // contiguous: about 1 MiB
}

// A chunk of 2^31 rows, of rows of 2^33 bytes: 2^64 bytes.
TEST(Dataset, BlocksOfChunksThatNoMemoryHolds) {
  const Folder folder;
  const auto file = Hdf5File::create(folder / "c.h5");
  file->create_dataset("/image", Shape({2, 3, 5}), Dtype::u8, {2});
  file->close();
  const std::vector<std::filesystem::path> path{folder / "c.h5"};
  std::string text = Dataset::open(path, {{"image", "/image"}}).text();
  const auto change = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, from.size(), to);
  };
  change(" 2 3 5 u8", " 2 2147483648 4 u8");      // the field's shape
  change(" 3 0 3 5 u8", " 3 0 2147483648 4 u8");  // the dataset's, without its rows
  change(" 1 2 0", " 1 2147483648 0");            // chunked, rows of a chunk, filters
  const Dataset data = Dataset::from_text(text);
  EXPECT_EQ(data.decoded_bytes(), std::uint64_t{1} << 34);
  EXPECT_EQ(data.files()[0].fields[0].chunk_rows, std::int64_t{1} << 31);
  EXPECT_EQ(data.block_rows(data.files()[0]), 1);
}

}  // namespace
}  // namespace trireme::io
