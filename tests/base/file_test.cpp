// Files: content, replacement, and errors that name path and reason.
#include "core/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "tests/base/folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The Error that `call` throws.
template <class Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::done, "nothing was thrown"};
}

TEST(File, WritesAndReadsAtOffsets) {
  const Folder folder;
  File file(folder / "a", O_RDWR | O_CREAT);
  file.write(bytes_of(std::string_view("hello world")));
  file.write_at(bytes_of(std::string_view("HELLO")), 0);
  file.sync();
  std::array<char, 5> got{};
  file.read_at(std::as_writable_bytes(std::span(got)), 6);
  EXPECT_EQ(std::string(got.data(), got.size()), "world");
  file.close();
  EXPECT_EQ(read_file(folder / "a", 11), "HELLO world");
}

TEST(File, MovesItsDescriptor) {
  const Folder folder;
  File first(folder / "a", O_RDWR | O_CREAT);
  const int fd = first.fd();
  File second = std::move(first);
  EXPECT_EQ(second.fd(), fd);
  File third;
  third = std::move(second);
  EXPECT_EQ(third.fd(), fd);
  EXPECT_EQ(third.path(), folder / "a");
  third.close();
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the descriptor is still open";
}

TEST(File, ErrorsNamePathAndReason) {
  const Folder folder;
  const Error missing = error_of([&] { File(folder / "missing", O_RDONLY); });
  EXPECT_EQ(missing.code(), ExitCode::io);
  EXPECT_THAT(missing.what(), AllOf(HasSubstr("/missing: cannot be opened"), HasSubstr("No such file")));

  File full("/dev/full", O_WRONLY);
  const Error no_space = error_of([&] { full.write(bytes_of(std::string_view("x"))); });
  EXPECT_EQ(no_space.code(), ExitCode::io);
  EXPECT_THAT(no_space.what(), HasSubstr("/dev/full: cannot be written: No space left"));

  File shorter(folder / "short", O_RDWR | O_CREAT);
  shorter.write(bytes_of(std::string_view("abc")));
  std::array<std::byte, 8> buffer{};
  const Error truncated = error_of([&] { shorter.read_at(buffer, 1); });
  EXPECT_EQ(truncated.code(), ExitCode::data);
  EXPECT_THAT(truncated.what(), AllOf(HasSubstr("/short: ends at byte 3"), HasSubstr("up to 9")));

  const Error directory = error_of([&] { (void)read_file(folder.path(), 10); });
  EXPECT_EQ(directory.code(), ExitCode::io);
  EXPECT_THAT(directory.what(), HasSubstr("Is a directory"));
}

TEST(ReadFile, KeepsToTheLimit) {
  const Folder folder;
  replace_file(folder / "a", std::string(100'000, 'x'));
  EXPECT_EQ(read_file(folder / "a", 100'000).size(), 100'000u);
  EXPECT_EQ(error_of([&] { (void)read_file(folder / "a", 99'999); }).code(), ExitCode::data);
}

TEST(ReplaceFile, ReplacesAndLeavesNothingElse) {
  const Folder folder;
  replace_file(folder / "a", "old");
  replace_file(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a", 100), "new");
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(ReplaceFile, AFailureKeepsTheOldAndRemovesTheTemporary) {
  const Folder folder;
  std::filesystem::create_directories(folder / "taken" / "inside");  // a rename onto it fails
  const Error error = error_of([&] { replace_file(folder / "taken", "new"); });
  EXPECT_EQ(error.code(), ExitCode::io);
  EXPECT_THAT(error.what(), HasSubstr("cannot be renamed to"));
  EXPECT_FALSE(std::filesystem::exists(folder / "taken.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder / "taken" / "inside"));
}

TEST(MakeFolders, MakesAllThatAreMissingAndNamesWhatIsInTheWay) {
  const Folder folder;
  make_folders(folder.path() / "a/b/../c/d/");
  make_folders(folder.path() / "a/c/d");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a/c/d"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a/b"));
  replace_file(folder.path() / "file", "");
  for (const char* name : {"file", "file/below"}) {
    const Error error = error_of([&] { make_folders(folder.path() / name); });
    EXPECT_EQ(error.code(), ExitCode::io) << name;
    EXPECT_THAT(error.what(), HasSubstr("/file: Not a directory"));
  }
}

TEST(DurableRename, MovesAndNamesBothOnFailure) {
  const Folder folder;
  replace_file(folder / "a", "x");
  durable_rename(folder / "a", folder / "b");
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  EXPECT_EQ(read_file(folder / "b", 10), "x");
  const Error error = error_of([&] { durable_rename(folder / "a", folder / "c"); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("/a: cannot be renamed to"), HasSubstr("/c")));
  EXPECT_EQ(error_of([&] { sync_folder(folder / "none"); }).code(), ExitCode::io);
}

}  // namespace
}  // namespace trireme
