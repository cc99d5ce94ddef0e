// What is wrong with a job's data is found before the first step, with file, dataset and both values.
#include "io/dataset/dataset.h"
#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/raw_hdf5.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::open_samples;
using test::write_samples;

TEST(DatasetErrors, PatternsThatMatchNothing) {
  const Folder folder;
  write_samples(folder / "train-0.h5", 0, 2);
  expect_error(ExitCode::data, {"trian-*.h5", "no file matches"},
               [&] { static_cast<void>(open_samples({folder / "trian-*.h5"})); });
  expect_error(ExitCode::data, {"train-1.h5", "no such file", "did you mean train-0.h5?"},
               [&] { static_cast<void>(open_samples({folder / "train-1.h5"})); });
  expect_error(ExitCode::data, {"absent", "does not exist"},
               [&] { static_cast<void>(open_samples({folder / "absent/*.h5"})); });
  expect_error(ExitCode::usage, {"no data files"}, [&] { static_cast<void>(open_samples({})); });
}

TEST(DatasetErrors, AFileThatComesTwice) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 2);
  expect_error(ExitCode::data, {"a.h5", "two patterns", "twice"}, [&] {
    static_cast<void>(open_samples({folder / "a.h5", folder / "*.h5"}));
  });
  expect_error(ExitCode::data, {"a.h5", "same file"}, [&] {
    static_cast<void>(open_samples({folder / "a.h5", folder / "./a.h5"}));
  });
  std::filesystem::create_symlink(folder / "a.h5", folder / "b.h5");
  expect_error(ExitCode::data, {"a.h5", "b.h5", "same file"},
               [&] { static_cast<void>(open_samples({folder / "*.h5"})); });
}

TEST(DatasetErrors, FieldsOfUnequalLength) {
  const Folder folder;
  const auto file = Hdf5File::create(folder / "u.h5");
  file->create_dataset("/image", Shape({1000, 2, 3}), Dtype::u8, {});
  file->create_dataset("/label", Shape({999}), Dtype::i64, {});
  file->close();
  expect_error(ExitCode::data, {"u.h5", "/image has 1000 rows", "/label has 999"},
               [&] { static_cast<void>(open_samples({folder / "u.h5"})); });
}

TEST(DatasetErrors, FilesThatDisagree) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 2);
  const auto write = [&](const Shape& shape, Dtype label) {
    const auto file = Hdf5File::create(folder / "b.h5");
    file->create_dataset("/image", shape, Dtype::u8, {});
    file->create_dataset("/label", Shape({2}), label, {});
    file->close();
  };
  write(Shape({2, 3, 2}), Dtype::i64);
  expect_error(ExitCode::data, {"b.h5:/image", "(3, 2)", "a.h5", "(2, 3)"},
               [&] { static_cast<void>(open_samples({folder / "*.h5"})); });
  write(Shape({2, 2, 3}), Dtype::i32);
  expect_error(ExitCode::data, {"b.h5:/label", "32-bit", "i32", "a.h5", "64-bit", "i64"},
               [&] { static_cast<void>(open_samples({folder / "*.h5"})); });
  write(Shape({2, 2, 3}), Dtype::i64);
  EXPECT_EQ(open_samples({folder / "*.h5"}).samples(), 4);
}

TEST(DatasetErrors, OneSampleFilesAmongOthers) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 2);
  const auto file = Hdf5File::create(folder / "b.h5");
  file->create_dataset("/image", Shape({2, 3}), Dtype::u8, {});
  file->create_dataset("/label", Shape(), Dtype::i64, {});
  file->close();
  expect_error(ExitCode::data, {"b.h5 holds one sample", "a.h5 holds rows"},
               [&] { static_cast<void>(open_samples({folder / "*.h5"})); });
}

// Headers can claim what no file holds: refused, before anything is computed from it that could wrap.
TEST(DatasetErrors, ASampleOfMoreThanATebibyte) {
  const Folder folder;
  constexpr std::uint64_t tebi = std::uint64_t{1} << 40;
  for (const std::uint64_t row : {tebi, tebi + 8}) {
    const std::uint64_t half = row / 4;
    test::write_raw(folder / "large.h5",
                    {{"/image", "f32be", {2, half}, {}, {1, 1024}, "", ""}, {"/label", "u8", {2}, {0, 1}, {}, "", ""}});
    if (row == tebi) {
      EXPECT_EQ(open_samples({folder / "large.h5"}).samples(), 2);
    } else {
      expect_error(ExitCode::data, {"large.h5:/image", std::to_string(half), "1 TiB"},
                   [&] { static_cast<void>(open_samples({folder / "large.h5"})); });
    }
  }
}

TEST(DatasetErrors, NoSamplesAndNoFields) {
  const Folder folder;
  write_samples(folder / "a.h5", 0, 0);
  expect_error(ExitCode::data, {"a.h5", "no samples"}, [&] { static_cast<void>(open_samples({folder / "a.h5"})); });
  const std::vector<std::filesystem::path> files = {folder / "a.h5"};
  expect_error(ExitCode::usage, {"data.fields"}, [&] { static_cast<void>(Dataset::open(files, {})); });
  expect_error(ExitCode::data, {"a.h5:/images", "did you mean /image?"}, [&] {
    static_cast<void>(Dataset::open(files, {{"image", "/images"}}));
  });
}

}  // namespace
}  // namespace trireme::io
