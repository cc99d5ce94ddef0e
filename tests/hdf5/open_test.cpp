// Files that cannot be opened: each is told in its own words, with what to do.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/base/folder.h"
#include "tests/hdf5/raw_hdf5.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::write_raw;

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(Hdf5Open, WhatIsNotHdf5SaysWhatItIs) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "x.h5";
  const auto open = [&] { static_cast<void>(Hdf5File::open(path)); };
  expect_error(ExitCode::data, {"x.h5", "no such file"}, open);
  expect_error(ExitCode::data, {"is a folder"}, [&] { static_cast<void>(Hdf5File::open(folder.path())); });
  ASSERT_EQ(::mkfifo((folder.path() / "fifo").c_str(), 0600), 0);
  expect_error(ExitCode::data, {"fifo", "regular file"},
               [&] { static_cast<void>(Hdf5File::open(folder.path() / "fifo")); });
  write_bytes(path, "");
  expect_error(ExitCode::data, {"x.h5", "is empty"}, open);
  write_bytes(path, "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n");
  expect_error(ExitCode::data, {"x.h5", "not an HDF5 file", "Git LFS"}, open);
  write_bytes(path, "\x1f\x8b and more");
  expect_error(ExitCode::data, {"x.h5", "gzip"}, open);
  write_bytes(path, std::string("\0\0\x08\x03 and more", 13));
  expect_error(ExitCode::data, {"x.h5", "trireme pack"}, open);
  write_bytes(path, "some text");
  expect_error(ExitCode::data, {"x.h5", "not an HDF5 file", "signature"}, open);
}

TEST(Hdf5Open, TruncatedFileSaysSo) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "cut.h5";
  write_raw(path, {{"/x", "u8", {5000}, std::vector<double>(5000, 1), {}, "", ""}});
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  expect_error(ExitCode::data, {"cut.h5", "is truncated", "Copy it again"},
               [&] { static_cast<void>(Hdf5File::open(path)); });
  std::filesystem::resize_file(path, 12);  // the signature and little more
  expect_error(ExitCode::data, {"cut.h5"}, [&] { static_cast<void>(Hdf5File::open(path)); });
}

TEST(Hdf5Open, FileBeingWrittenElsewhereSaysSo) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "busy.h5";
  write_raw(path, {{"/x", "u8", {4}, {1, 2, 3, 4}, {}, "", ""}});
  // The writer is a program of its own: locks of one process don't stand against each other.
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  static int ready_end = 0, done_end = 0;
  ready_end = ready[1];
  done_end = done[0];
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    test::hold_for_writing(path, [] {
      char byte = 0;
      return static_cast<int>(::write(ready_end, &byte, 1) + ::read(done_end, &byte, 1));
    });
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  expect_error(ExitCode::data, {"busy.h5", "another process is writing it", "HDF5_USE_FILE_LOCKING"},
               [&] { static_cast<void>(Hdf5File::open(path)); });
  ::close(done[1]);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NO_THROW(static_cast<void>(Hdf5File::open(path)));
}

TEST(Hdf5Open, MissingDatasetNamesTheNearest) {
  const Folder folder;
  write_raw(folder.path() / "a.h5", {{"/train/image", "u8", {4}, {1, 2, 3, 4}, {}, "", ""}});
  const auto file = Hdf5File::open(folder.path() / "a.h5");
  EXPECT_TRUE(file->has("/train/image"));
  EXPECT_FALSE(file->has("/train"));
  EXPECT_FALSE(file->has("/test/image"));
  EXPECT_FALSE(file->has("/"));
  expect_error(ExitCode::data, {"a.h5:/train/images", "no such dataset", "did you mean /train/image?"},
               [&] { static_cast<void>(file->info("/train/images")); });
  expect_error(ExitCode::data, {"a.h5:/y", "no such dataset", "the file has /train/image"},
               [&] { static_cast<void>(file->info("/y")); });
}

TEST(Hdf5Open, CreatingWhereNothingCanBeIsAnIoError) {
  const Folder folder;
  expect_error(ExitCode::io, {"absent/x.h5", "cannot be created"},
               [&] { static_cast<void>(Hdf5File::create(folder.path() / "absent" / "x.h5")); });
}

}  // namespace
}  // namespace trireme::io
