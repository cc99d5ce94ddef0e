// Every stored type comes as the narrowest of ours that holds it, with its exact values, in either byte order.
#include <cmath>
#include <limits>

#include "tests/base/folder.h"
#include "tests/hdf5/raw_hdf5.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::RawDataset;
using test::read_rows;
using test::write_raw;

struct Case {
  std::string type;
  Dtype dtype;
  std::vector<double> values;  // extremes of the type
  std::string words;           // part of stored_type
};

void expect_values(const Hdf5File& file, const std::string& dataset, Dtype dtype, const std::vector<double>& expected) {
  const auto rows = static_cast<std::int64_t>(expected.size());
  std::vector<double> got;
  const auto collect = [&](const auto& values) { got.assign(values.begin(), values.end()); };
  switch (dtype) {
    case Dtype::f64: collect(read_rows<double>(file, dataset, 0, rows, dtype)); break;
    case Dtype::f32: collect(read_rows<float>(file, dataset, 0, rows, dtype)); break;
    case Dtype::i64: collect(read_rows<std::int64_t>(file, dataset, 0, rows, dtype)); break;
    case Dtype::i32: collect(read_rows<std::int32_t>(file, dataset, 0, rows, dtype)); break;
    default: collect(read_rows<std::uint8_t>(file, dataset, 0, rows, dtype)); break;
  }
  EXPECT_EQ(got, expected) << dataset;
}

TEST(Hdf5Types, EachComesAsTheNarrowestThatHoldsIt) {
  const Folder folder;
  const std::vector<Case> cases = {
      {"u8", Dtype::u8, {0, 1, 255}, "8-bit unsigned integer"},
      {"i8", Dtype::i32, {-128, 0, 127}, "8-bit signed integer"},
      {"u16le", Dtype::i32, {0, 258, 65535}, "16-bit little-endian unsigned integer"},
      {"u16be", Dtype::i32, {0, 258, 65535}, "16-bit big-endian unsigned integer"},
      {"i16le", Dtype::i32, {-32768, 258, 32767}, "16-bit little-endian signed"},
      {"i16be", Dtype::i32, {-32768, 258, 32767}, "16-bit big-endian signed"},
      {"u32le", Dtype::i64, {0, 16909060, 4294967295.0}, "32-bit little-endian unsigned"},
      {"u32be", Dtype::i64, {0, 16909060, 4294967295.0}, "32-bit big-endian unsigned"},
      {"i32le", Dtype::i32, {-2147483648.0, 16909060, 2147483647}, "32-bit little-endian signed"},
      {"i32be", Dtype::i32, {-2147483648.0, 16909060, 2147483647}, "32-bit big-endian signed"},
      {"i64le", Dtype::i64, {-9007199254740992.0, 3, 9007199254740992.0}, "64-bit little-endian signed"},
      {"i64be", Dtype::i64, {-9007199254740992.0, 3, 9007199254740992.0}, "64-bit big-endian signed"},
      {"u64be", Dtype::i64, {0, 3, 9007199254740992.0}, "64-bit big-endian unsigned"},
      {"i12be", Dtype::i32, {0, 258, 4095}, "12-bit big-endian unsigned"},
      {"f16le", Dtype::f32, {-65504, 0.0999755859375, 5.9604644775390625e-8}, "16-bit little-endian float"},
      {"f16be", Dtype::f32, {-65504, 0.0999755859375, 5.9604644775390625e-8}, "16-bit big-endian float"},
      {"f32le", Dtype::f32, {-1.5, 0.0999999940395355224609375, 1e38f}, "32-bit little-endian float"},
      {"f32be", Dtype::f32, {-1.5, 0.0999999940395355224609375, 1e38f}, "32-bit big-endian float"},
      {"f64le", Dtype::f64, {-1.5, 0.1, 1e300}, "64-bit little-endian float"},
      {"f64be", Dtype::f64, {-1.5, 0.1, 1e300}, "64-bit big-endian float"},
      {"f80", Dtype::f64, {-1.5, 0.1, 1e300}, "float"},
      {"bool", Dtype::boolean, {1, 0, 1}, "bool"},
      {"bits", Dtype::boolean, {1, 0, 1}, "bit field"},
      {"enum", Dtype::i32, {2, 0, 1}, "enumeration over 8-bit signed"}};
  std::vector<RawDataset> datasets;
  for (const Case& c : cases) datasets.push_back({"/" + c.type, c.type, {c.values.size()}, c.values, {}, "", ""});
  write_raw(folder.path() / "types.h5", datasets);
  const auto file = Hdf5File::open(folder.path() / "types.h5");
  for (const Case& c : cases) {
    const DatasetInfo info = file->info("/" + c.type);
    EXPECT_EQ(info.dtype, c.dtype) << c.type << " came as " << name_of(info.dtype);
    EXPECT_THAT(info.stored_type, testing::HasSubstr(c.words));
    EXPECT_EQ(info.shape, Shape({3}));
    expect_values(*file, "/" + c.type, c.dtype, c.values);
  }
}

TEST(Hdf5Types, HalvesKeepInfinityNanAndSubnormals) {
  const Folder folder;
  const double infinity = std::numeric_limits<double>::infinity();
  // More than one row, so that widening in place has something to overwrite.
  std::vector<double> values = {infinity, -infinity, 6.103515625e-05, 6.0975551605224609375e-05};
  for (int i = 0; i < 2000; ++i) values.push_back(i / 8.0);
  write_raw(folder.path() / "h.h5", {{"/x", "f16be", {values.size()}, values, {}, "", ""}});
  const auto file = Hdf5File::open(folder.path() / "h.h5");
  const auto got = read_rows<float>(*file, "/x", 0, static_cast<std::int64_t>(values.size()), Dtype::f32);
  EXPECT_EQ(std::vector<double>(got.begin(), got.end()), values);
  const auto bits = read_rows<std::uint16_t>(*file, "/x", 0, 2, Dtype::f16);  // as they are, for who asks for f16
  EXPECT_EQ(bits, (std::vector<std::uint16_t>{0x7c00, 0xfc00}));
}

TEST(Hdf5Types, U64BeyondI64IsRefusedWithItsRow) {
  const Folder folder;
  test::write_u64(folder.path() / "u.h5", "/y", {1, 9223372036854775807u, 9223372036854775808u});
  const auto file = Hdf5File::open(folder.path() / "u.h5");
  EXPECT_EQ(read_rows<std::int64_t>(*file, "/y", 0, 2, Dtype::i64),
            (std::vector<std::int64_t>{1, std::numeric_limits<std::int64_t>::max()}));
  expect_error(ExitCode::data, {"u.h5:/y", "row 2", "9223372036854775808"},
               [&] { static_cast<void>(read_rows<std::int64_t>(*file, "/y", 1, 2, Dtype::i64)); });
}

TEST(Hdf5Types, NarrowingOutOfRangeIsRefusedNotClipped) {
  const Folder folder;
  write_raw(folder.path() / "n.h5",
            {{"/y", "i32le", {3}, {5, 255, 256}, {}, "", ""}, {"/wide", "f80", {1}, {1e300}, {}, "", ""}});
  const auto file = Hdf5File::open(folder.path() / "n.h5");
  EXPECT_EQ(read_rows<std::uint8_t>(*file, "/y", 0, 2, Dtype::u8), (std::vector<std::uint8_t>{5, 255}));
  expect_error(ExitCode::data, {"n.h5:/y", "rows 2 to 3", "32-bit"},
               [&] { static_cast<void>(read_rows<std::uint8_t>(*file, "/y", 2, 1, Dtype::u8)); });
  expect_error(ExitCode::data, {"n.h5:/wide", "out of the range"},
               [&] { static_cast<void>(read_rows<float>(*file, "/wide", 0, 1, Dtype::f32)); });
}

TEST(Hdf5Types, WhatIsNoNumberIsRefusedByName) {
  const Folder folder;
  const std::vector<std::pair<std::string, std::string>> kinds = {{"text", "holds text"},
                                                                  {"variable text", "holds text"},
                                                                  {"variable rows", "variable-length rows"},
                                                                  {"compound", "compound"},
                                                                  {"reference", "references"},
                                                                  {"opaque", "opaque"},
                                                                  {"array", "array type"},
                                                                  {"bits16", "bit field wider"},
                                                                  {"nine dimensions", "9 dimensions, at most 8"},
                                                                  {"null", "empty (null)"},
                                                                  {"filter", "32001"}};
  for (const auto& [kind, words] : kinds) {
    test::write_unreadable(folder.path() / "bad.h5", "/image", kind);
    const auto file = Hdf5File::open(folder.path() / "bad.h5");
    expect_error(ExitCode::data, {"bad.h5:/image", words}, [&] { static_cast<void>(file->info("/image")); });
  }
}

}  // namespace
}  // namespace trireme::io
