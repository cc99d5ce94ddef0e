// IDX files: values in the host's order; what a header promises and the file does not hold is refused unread.
#include <zlib.h>

#include <cstdint>
#include <fstream>

#include "io/dataset/pack.h"
#include "tests/base/folder.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::values_of;

std::string idx(int type, const std::vector<std::uint32_t>& extents, const std::string& values) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xff);
  }
  return bytes + values;
}

void write_plain(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_gzip(const std::filesystem::path& path, const std::string& bytes, const char* mode = "wb") {
  const gzFile file = gzopen(path.c_str(), mode);
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

TEST(Idx, PlainAndGzippedGiveTheSame) {
  const Folder folder;
  std::string pixels;
  for (int i = 0; i < 2 * 28 * 28; ++i) pixels += static_cast<char>(i % 256);
  write_plain(folder / "x", idx(0x08, {2, 28, 28}, pixels));
  write_gzip(folder / "x.gz", idx(0x08, {2, 28, 28}, pixels));
  for (const char* name : {"x", "x.gz"}) {
    const IdxArray array = read_idx(folder / name);
    EXPECT_EQ(array.shape, Shape({2, 28, 28}));
    EXPECT_EQ(array.dtype, Dtype::u8);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(array.values.data()), array.values.size()), pixels);
  }
}

TEST(Idx, SeveralGzipMembersInARow) {
  const Folder folder;
  const std::string bytes = idx(0x08, {6}, "abcdef");
  write_gzip(folder / "x.gz", bytes.substr(0, 9));
  write_gzip(folder / "x.gz", bytes.substr(9), "ab");
  EXPECT_EQ(values_of<char>(read_idx(folder / "x.gz").values), (std::vector<char>{'a', 'b', 'c', 'd', 'e', 'f'}));
}

TEST(Idx, WiderTypesComeInTheHostsOrder) {
  const Folder folder;
  const auto read = [&](int type, std::uint32_t count, const std::string& values) {
    write_plain(folder / "x", idx(type, {count}, values));
    return read_idx(folder / "x");
  };
  const IdxArray bytes = read(0x09, 2, "\x80\x7f");
  EXPECT_EQ(bytes.dtype, Dtype::i32);
  EXPECT_EQ(values_of<std::int32_t>(bytes.values), (std::vector<std::int32_t>{-128, 127}));
  EXPECT_EQ(values_of<std::int32_t>(read(0x0B, 2, std::string("\x01\x02\xff\xfe", 4)).values),
            (std::vector<std::int32_t>{258, -2}));
  EXPECT_EQ(values_of<std::int32_t>(read(0x0C, 1, std::string("\x01\x02\x03\x04", 4)).values),
            (std::vector<std::int32_t>{16909060}));
  EXPECT_EQ(values_of<float>(read(0x0D, 1, std::string("\x3f\xc0\0\0", 4)).values), (std::vector<float>{1.5f}));
  EXPECT_EQ(values_of<double>(read(0x0E, 1, std::string("\xbf\xf8\0\0\0\0\0\0", 8)).values),
            (std::vector<double>{-1.5}));
}

TEST(Idx, ZeroRowsAreAnArrayWithoutValues) {
  const Folder folder;
  write_plain(folder / "x", idx(0x08, {0, 28}, ""));
  EXPECT_EQ(read_idx(folder / "x").shape, Shape({0, 28}));
}

TEST(Idx, DamageIsRefusedByName) {
  const Folder folder;
  const std::filesystem::path path = folder / "x";
  const auto read = [&] { static_cast<void>(read_idx(path)); };
  expect_error(ExitCode::data, {"x", "no such file"}, read);
  write_plain(path, "ab");
  expect_error(ExitCode::data, {"shorter than an IDX header"}, read);
  write_plain(path, "PNG and more than that");
  expect_error(ExitCode::data, {"not an IDX file", "50 4e 47"}, read);
  write_plain(path, idx(0x0A, {2}, "ab"));
  expect_error(ExitCode::data, {"not an IDX file", "0a"}, read);
  write_plain(path, idx(0x08, {}, ""));
  expect_error(ExitCode::data, {"0 dimensions"}, read);
  write_plain(path, idx(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "a"));
  expect_error(ExitCode::data, {"9 dimensions"}, read);
  write_plain(path, idx(0x08, {2, 3}, "").substr(0, 10));
  expect_error(ExitCode::data, {"ends within its header"}, read);
  write_plain(path, idx(0x08, {2, 3}, "abcde"));
  expect_error(ExitCode::data, {"6 bytes", "(2, 3)", "it has 5", "truncated"}, read);
  write_plain(path, idx(0x08, {2, 3}, "abcdefg"));
  expect_error(ExitCode::data, {"goes on after", "(2, 3)"}, read);
}

TEST(Idx, HugeHeadersTakeNoMemory) {
  const Folder folder;
  // 2^96 values: the product would wrap.
  write_plain(folder / "x", idx(0x0E, {0xffffffff, 0xffffffff, 0xffffffff}, "abc"));
  expect_error(ExitCode::data, {"header tells of", "can hold"}, [&] { static_cast<void>(read_idx(folder / "x")); });
  write_plain(folder / "x", idx(0x08, {0x7fffffff}, "abc"));
  expect_error(ExitCode::data, {"header tells of", "can hold 11"}, [&] { static_cast<void>(read_idx(folder / "x")); });
  write_gzip(folder / "x.gz", idx(0x08, {0x7fffffff}, "abc"));
  expect_error(ExitCode::data, {"header tells of"}, [&] { static_cast<void>(read_idx(folder / "x.gz")); });
}

TEST(Idx, DamagedCompressionIsRefused) {
  const Folder folder;
  std::string values;
  std::uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) values += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  const std::filesystem::path path = folder / "x.gz";
  write_gzip(path, idx(0x08, {20000}, values));
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 20);
  expect_error(ExitCode::data, {"x.gz", "compressed bytes end early"}, [&] { static_cast<void>(read_idx(path)); });
  write_gzip(path, idx(0x08, {20000}, values));
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(size) - 6);  // within the checksum
    file.put('!');
  }
  expect_error(ExitCode::data, {"x.gz", "damaged"}, [&] { static_cast<void>(read_idx(path)); });
  write_gzip(path, idx(0x08, {10}, "abcdefghijklmno"));
  expect_error(ExitCode::data, {"x.gz", "goes on after"}, [&] { static_cast<void>(read_idx(path)); });
}

}  // namespace
}  // namespace trireme::io
