// `trireme pack`: every sample once and in order, its own attributes, nothing left or lost when it fails.
#include "io/dataset/pack.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>

#include "core/base/rank.h"
#include "io/dataset/dataset.h"
#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/values.h"

// Where a close fails (the full disk below) HDF5 forgets its own memory; read by LeakSanitizer alone.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace trireme::io {
namespace {

using test::expect_error;
using test::read_rows;

// IDX files of `rows` samples as tests/dataset/data_files.h has them; labels as bytes.
void write_idx(const Folder& folder, std::int64_t rows) {
  std::ofstream images(folder / "images", std::ios::binary), labels(folder / "labels", std::ios::binary);
  const auto count = [&](std::ofstream& file) {
    for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(rows >> shift & 0xff));
  };
  images.write("\0\0\x08\x03", 4);
  count(images);
  images.write("\0\0\0\x02\0\0\0\x03", 8);
  labels.write("\0\0\x08\x01", 4);
  count(labels);
  for (std::int64_t s = 0; s < rows; ++s) {
    for (const std::uint8_t p : test::image(s)) images.put(static_cast<char>(p));
    labels.put(static_cast<char>(test::label(s)));
  }
}

PackOptions idx_options(const Folder& folder) {
  PackOptions options;
  options.fields = {{"image", (folder / "images").string()}, {"label", (folder / "labels").string()}};
  options.output = folder / "out/train";
  return options;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Pack, IdxIntoSeveralFiles) {
  const Folder folder;
  write_idx(folder, 1003);
  PackOptions options = idx_options(folder);
  options.files = 4;
  options.chunk_rows = 64;
  options.deflate = 4;
  options.shuffle = options.fletcher32 = true;
  std::vector<std::pair<std::int64_t, std::int64_t>> progress;
  const auto files = pack(options, [&](std::int64_t done, std::int64_t all) { progress.push_back({done, all}); });
  EXPECT_EQ(names_in(folder / "out"), (std::vector<std::string>{"train-00000-of-00004.h5", "train-00001-of-00004.h5",
                                                                "train-00002-of-00004.h5", "train-00003-of-00004.h5"}));
  ASSERT_EQ(files.size(), 4u);
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_EQ(progress.back(), (std::pair<std::int64_t, std::int64_t>{1003, 1003}));
  std::int64_t sample = 0;
  for (const auto& path : files) {
    const auto file = Hdf5File::open(path);
    const std::int64_t rows = file->info("/image").shape[0];
    EXPECT_EQ(file->info("/image").chunk_rows, 64);
    EXPECT_EQ(file->info("/label").filters, (std::vector<std::string>{"shuffle", "deflate", "fletcher32"}));
    const auto pixels = read_rows<std::uint8_t>(*file, "/image", 0, rows, Dtype::u8);
    const auto labels = read_rows<std::uint8_t>(*file, "/label", 0, rows, Dtype::u8);
    for (std::int64_t r = 0; r < rows; ++r, ++sample) {
      const auto begin = pixels.begin() + r * 6;
      ASSERT_EQ(std::vector<std::uint8_t>(begin, begin + 6), test::image(sample));
      ASSERT_EQ(labels[static_cast<std::size_t>(r)], test::label(sample));
    }
  }
  EXPECT_EQ(sample, 1003);
  const auto last = Hdf5File::open(files.back());
  EXPECT_THAT(last->attribute("creator").value(), testing::StartsWith("trireme pack"));
  EXPECT_EQ(last->attribute("rows"), "752 to 1003 of 1003");
  EXPECT_THAT(last->attribute("source.image").value(), testing::MatchesRegex("images, 6034 bytes, xxh3 [0-9a-f]{16}"));
}

TEST(Pack, Hdf5IntoOneContiguousFile) {
  const Folder folder;
  test::write_samples(folder / "a.h5", 0, 777, {100, 1});
  PackOptions options;
  options.fields = {{"x", (folder / "a.h5").string() + ":/image"}, {"y", (folder / "a.h5").string() + ":/label"}};
  options.output = folder / "b";
  options.chunk_rows = 0;
  const auto files = pack(options, {});
  const auto file = Hdf5File::open(folder / "b-00000-of-00001.h5");
  EXPECT_FALSE(file->info("/x").chunked);
  const auto source = Hdf5File::open(folder / "a.h5");
  EXPECT_EQ(read_rows<std::uint8_t>(*file, "/x", 0, 777, Dtype::u8),
            read_rows<std::uint8_t>(*source, "/image", 0, 777, Dtype::u8));
  EXPECT_EQ(read_rows<std::int64_t>(*file, "/y", 0, 777, Dtype::i64),
            read_rows<std::int64_t>(*source, "/label", 0, 777, Dtype::i64));
}

TEST(Pack, ShufflingKeepsFieldsTogetherAndEverySampleOnce) {
  const Folder folder;
  write_idx(folder, 500);
  PackOptions options = idx_options(folder);
  options.shuffle_samples = true;
  const auto order_of = [&](std::uint64_t seed) {
    options.seed = seed;
    options.overwrite = true;
    const auto file = Hdf5File::open(pack(options, {}).front());
    const auto pixels = read_rows<std::uint8_t>(*file, "/image", 0, 500, Dtype::u8);
    const auto labels = read_rows<std::uint8_t>(*file, "/label", 0, 500, Dtype::u8);
    std::vector<std::pair<int, int>> order;
    for (std::size_t r = 0; r < 500; ++r) order.push_back({pixels[r * 6], labels[r]});
    return order;
  };
  const auto first = order_of(1);
  EXPECT_NE(order_of(2), first);
  EXPECT_EQ(order_of(1), first);
  std::vector<std::pair<int, int>> unshuffled;
  for (std::int64_t s = 0; s < 500; ++s) unshuffled.push_back({test::pixel(s, 0), static_cast<int>(test::label(s))});
  EXPECT_NE(first, unshuffled);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::sort(unshuffled.begin(), unshuffled.end());
  EXPECT_EQ(sorted, unshuffled);
}

TEST(Pack, RefusesWhatMakesNoSense) {
  const Folder folder;
  write_idx(folder, 10);
  test::write_samples(folder / "a.h5", 0, 9);
  PackOptions options = idx_options(folder);
  options.fields["label"] = (folder / "a.h5").string() + ":/label";
  expect_error(ExitCode::data, {"image", "10 rows", "label", "9"}, [&] { pack(options, {}); });
  options.fields["label"] = (folder / "a.h5").string();
  expect_error(ExitCode::usage, {"label", "name the dataset", "a.h5:/image"}, [&] { pack(options, {}); });
  options.fields.erase("label");
  options.files = 11;
  expect_error(ExitCode::usage, {"10 samples", "11 files"}, [&] { pack(options, {}); });
  options.files = 0;
  expect_error(ExitCode::usage, {"0 files"}, [&] { pack(options, {}); });
  options.fields.clear();
  expect_error(ExitCode::usage, {"no field"}, [&] { pack(options, {}); });
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST(Pack, ExistingFilesStandUnlessOverwritten) {
  const Folder folder;
  write_idx(folder, 10);
  PackOptions options = idx_options(folder);
  options.files = 2;
  pack(options, {});
  write_idx(folder, 20);
  expect_error(ExitCode::usage, {"train-00000-of-00002.h5", "exists", "--overwrite"}, [&] { pack(options, {}); });
  EXPECT_EQ(test::open_samples({folder / "out/*.h5"}).samples(), 10);
  options.overwrite = true;
  pack(options, {});
  EXPECT_EQ(test::open_samples({folder / "out/*.h5"}).samples(), 20);
  // train-*.h5 would match both sets.
  options.files = 4;
  expect_error(ExitCode::usage, {"of-00002.h5", "another number of files"}, [&] { pack(options, {}); });
  EXPECT_EQ(names_in(folder / "out").size(), 2u);
}

TEST(Pack, AFailedWriteLeavesNothingAndLosesNothing) {
  const Folder folder;
  write_idx(folder, 10);
  PackOptions options = idx_options(folder);
  pack(options, {});
  write_idx(folder, 100000);
  options.overwrite = true;
  // A full disk, by the limit on a file's size.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 200000, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string text;
  ExitCode code = ExitCode::done;
  try {
    pack(options, {});
  } catch (const Error& error) {
    text = error.what();
    code = error.code();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ExitCode::io) << text;
  EXPECT_THAT(text, testing::HasSubstr("train-00000-of-00001.h5"));
  EXPECT_EQ(names_in(folder / "out"), (std::vector<std::string>{"train-00000-of-00001.h5"}));
  EXPECT_EQ(test::open_samples({folder / "out/*.h5"}).samples(), 10);
}

// The second of three renames fails: what stood there before stands there again.
TEST(Pack, AFailureBetweenRenamesLeavesTheOldFiles) {
  for (const bool existed : {true, false}) {
    const Folder folder;
    write_idx(folder, 30);
    PackOptions options = idx_options(folder);
    options.files = 3;
    options.overwrite = true;
    std::vector<std::string> before;
    if (existed) {
      pack(options, {});
      before = names_in(folder / "out");
      write_idx(folder, 36);  // other contents: 12 samples a file
    }
    const auto lose_the_second = [&](std::int64_t done, std::int64_t total) {
      if (done != total) return;
      for (const auto& entry : std::filesystem::directory_iterator(folder / "out"))
        if (entry.path().filename().string().starts_with(".train-00001-")) std::filesystem::remove(entry.path());
    };
    expect_error(ExitCode::io, {"train-00001-of-00003.h5"}, [&] { pack(options, lose_the_second); });
    EXPECT_EQ(names_in(folder / "out"), before);
    for (const std::string& name : before)
      EXPECT_EQ(Hdf5File::open(folder / "out" / name)->info("/label").shape[0], 10) << name;
    pack(options, {});
    EXPECT_EQ(names_in(folder / "out").size(), 3u);  // and nothing put by is left
  }
}

// What a killed pack leaves goes with the next one; another host's, a living one's and other outputs' stay.
TEST(Pack, ClearsWhatKilledOnesLeft) {
  const Folder folder;
  write_idx(folder, 30);
  const PackOptions options = idx_options(folder);
  std::filesystem::create_directories(folder / "out");
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ::waitpid(dead, nullptr, 0);
  const auto hidden = [&](const std::string& name, const std::string& host, pid_t pid, const std::string& end) {
    return fmt::format(".{}.{}.{}{}", name, host, pid, end);
  };
  const std::string name = "train-00003-of-00008.h5";
  const std::string gone = hidden(name, host_name(), dead, ".tmp");
  const std::vector<std::string> stay{hidden(name, "elsewhere", dead, ".tmp"),
                                      hidden(name, host_name(), ::getpid(), ".tmp"),
                                      hidden("test-00000-of-00001.h5", host_name(), dead, ".tmp")};
  for (const std::string& file : stay) std::ofstream(folder / "out" / file) << "of another";
  std::ofstream(folder / "out" / gone) << "half";
  pack(options, {});
  std::vector<std::string> expected = stay;
  expected.emplace_back("train-00000-of-00001.h5");
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names_in(folder / "out"), expected);
  // Killed between its renames, where a file had been moved away: it comes back.
  std::filesystem::rename(folder / "out/train-00000-of-00001.h5",
                          folder / "out" / hidden("train-00000-of-00001.h5", host_name(), dead, ".old"));
  expect_error(ExitCode::usage, {"exists"}, [&] { pack(options, {}); });
  EXPECT_EQ(names_in(folder / "out"), expected);
}

TEST(Pack, LargeRowsGetChunksThatHdf5Takes) {
  const Folder folder;
  {
    const auto file = Hdf5File::create(folder / "big.h5");
    file->create_dataset("/x", Shape({2, 1024, 1024, 10}), Dtype::f32, {1});  // 40 MiB a row, never written
    file->close();
  }
  PackOptions options;
  options.fields = {{"x", (folder / "big.h5").string() + ":/x"}};
  options.output = folder / "packed";
  const auto file = Hdf5File::open(pack(options, {}).front());
  EXPECT_EQ(file->info("/x").chunk_rows, 1);
}

}  // namespace
}  // namespace trireme::io
