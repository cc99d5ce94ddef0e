// Rows of every layout, files written by ourselves, damage inside a dataset.
#include <fcntl.h>

#include <fstream>
#include <numeric>
#include <thread>

#include "core/base/file.h"
#include "tests/base/folder.h"
#include "tests/hdf5/raw_hdf5.h"
#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::RawDataset;
using test::read_rows;
using test::write_raw;

std::vector<double> counted(std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

TEST(Hdf5Rows, EveryLayoutGivesTheSameRows) {
  const Folder folder;
  const std::vector<RawDataset> datasets = {
      {"/contiguous", "u16be", {10, 2, 3}, counted(60), {}, "", ""},
      {"/compact", "u16be", {10, 2, 3}, counted(60), {}, "", "compact"},
      {"/external", "u16be", {10, 2, 3}, counted(60), {}, "", "external"},
      {"/chunked", "u16be", {10, 2, 3}, counted(60), {4, 2, 3}, "", ""},
      {"/deep/group/tiled", "u16be", {10, 2, 3}, counted(60), {3, 1, 2}, "shuffle deflate fletcher32", ""},
      {"/nbit", "i12be", {10, 2, 3}, counted(60), {4, 2, 3}, "nbit", ""}};
  write_raw(folder.path() / "a.h5", datasets, 512);
  const auto file = Hdf5File::open(folder.path() / "a.h5");
  std::vector<std::string> names;
  for (const RawDataset& dataset : datasets) {
    names.push_back(dataset.path);
    const auto rows = read_rows<std::int32_t>(*file, dataset.path, 3, 6, Dtype::i32);
    std::vector<std::int32_t> expected(36);
    std::iota(expected.begin(), expected.end(), 18);
    EXPECT_EQ(rows, expected) << dataset.path;
    EXPECT_EQ(read_rows<std::int32_t>(*file, dataset.path, 9, 1, Dtype::i32),
              (std::vector<std::int32_t>{54, 55, 56, 57, 58, 59}));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(file->datasets(), names);
  const DatasetInfo tiled = file->info("/deep/group/tiled");
  EXPECT_TRUE(tiled.chunked);
  EXPECT_EQ(tiled.chunk_rows, 3);
  EXPECT_EQ(tiled.filters, (std::vector<std::string>{"shuffle", "deflate", "fletcher32"}));
  EXPECT_FALSE(file->info("/contiguous").chunked);
  EXPECT_EQ(file->info("/contiguous").chunk_rows, 0);
}

TEST(Hdf5Rows, ScalarsLinksAndVirtualDatasets) {
  const Folder folder;
  for (const char* name : {"p0.h5", "p1.h5"}) {
    write_raw(folder.path() / name,
              {{"/x",
                "u8",
                {2, 2},
                name[1] == '0' ? std::vector<double>{1, 2, 3, 4} : std::vector<double>{5, 6, 7, 8},
                {},
                "",
                ""},
               {"/label", "i32be", {}, {7}, {}, "", ""}});
  }
  test::add_link(folder.path() / "p0.h5", "/alias", "/x");
  test::write_virtual(folder.path() / "v.h5", "/x", {folder.path() / "p0.h5", folder.path() / "p1.h5"}, 2, 2);
  const auto joined = Hdf5File::open(folder.path() / "v.h5");
  EXPECT_EQ(joined->info("/x").shape, Shape({4, 2}));
  EXPECT_EQ(read_rows<std::uint8_t>(*joined, "/x", 1, 2, Dtype::u8), (std::vector<std::uint8_t>{3, 4, 5, 6}));

  test::write_virtual(folder.path() / "gap.h5", "/x", {folder.path() / "p0.h5", folder.path() / "p2.h5"}, 2, 2);
  const auto gap = Hdf5File::open(folder.path() / "gap.h5");
  expect_error(ExitCode::data, {"gap.h5:/x", "virtual dataset", "p2.h5 does not exist"},
               [&] { static_cast<void>(gap->info("/x")); });

  const auto file = Hdf5File::open(folder.path() / "p0.h5");
  EXPECT_TRUE(file->has("/alias"));
  EXPECT_EQ(read_rows<std::uint8_t>(*file, "/alias", 0, 1, Dtype::u8), (std::vector<std::uint8_t>{1, 2}));
  EXPECT_EQ(file->info("/label").shape, Shape());
  EXPECT_EQ(read_rows<std::int32_t>(*file, "/label", 0, 1, Dtype::i32), (std::vector<std::int32_t>{7}));
}

TEST(Hdf5Rows, WhatWeWriteComesBack) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "w.h5";
  const std::vector<std::pair<std::string, Dtype>> types = {
      {"/f64", Dtype::f64}, {"/f32", Dtype::f32}, {"/f16", Dtype::f16}, {"/bf16", Dtype::bf16},
      {"/i64", Dtype::i64}, {"/i32", Dtype::i32}, {"/u8", Dtype::u8},   {"/bool", Dtype::boolean}};
  const auto bytes_for = [](Dtype dtype, std::size_t count) {
    std::vector<std::byte> bytes(count * size_of(dtype));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(dtype == Dtype::boolean ? i % 2 : i % 97);
    return bytes;
  };
  {
    const auto file = Hdf5File::create(path);
    for (const auto& [name, dtype] : types) {
      file->create_dataset(name, Shape({6, 5}), dtype, {4, dtype == Dtype::i64 ? 3 : 0, true, true});
      const auto bytes = bytes_for(dtype, 30);
      const std::size_t row = 5 * size_of(dtype);
      file->write(name, 0, 5, dtype, std::span(bytes).first(5 * row));
      file->write(name, 5, 1, dtype, std::span(bytes).subspan(5 * row));
    }
    file->write_attribute("creator", "trireme");
    file->write_attribute("creator", "trireme, again: ü");
    file->write_attribute("empty", "");
    file->close();
    file->close();
  }
  test::add_variable_attribute(path, "other", "by another program");
  const auto file = Hdf5File::open(path);
  for (const auto& [name, dtype] : types) {
    std::vector<std::byte> got(30 * size_of(dtype));
    file->read(name, 0, 6, dtype, got);
    EXPECT_EQ(got, bytes_for(dtype, 30)) << name;
  }
  EXPECT_EQ(file->info("/bool").dtype, Dtype::boolean);
  EXPECT_EQ(file->info("/i64").filters, (std::vector<std::string>{"shuffle", "deflate", "fletcher32"}));
  EXPECT_EQ(file->attribute("creator"), "trireme, again: ü");
  EXPECT_EQ(file->attribute("empty"), "");
  EXPECT_EQ(file->attribute("other"), "by another program");
  EXPECT_EQ(file->attribute("absent"), std::nullopt);
  EXPECT_THAT(hdf5_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Hdf5Rows, BytesWrittenAtTheOffsetAreTheDataset) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "o.h5";
  const auto file = Hdf5File::create(path);
  file->create_dataset("/a", Shape({3}), Dtype::f32, {});
  file->create_dataset("/b", Shape({100000}), Dtype::f32, {});
  const std::uint64_t offset = file->offset("/b");
  std::vector<float> values(100000);
  std::iota(values.begin(), values.end(), 0.5f);
  {
    File raw(path, O_WRONLY);
    raw.write_at(std::as_bytes(std::span(values)), offset);
    raw.sync();
  }
  file->close();
  const auto again = Hdf5File::open(path);
  EXPECT_EQ(read_rows<float>(*again, "/b", 0, 100000, Dtype::f32), values);
  EXPECT_EQ(again->offset("/b"), offset);
}

TEST(Hdf5Rows, DamagedChunkIsNamed) {
  const Folder folder;
  const std::filesystem::path path = folder.path() / "d.h5";
  write_raw(path, {{"/image", "u8", {100, 4}, std::vector<double>(400, 9), {10, 4}, "fletcher32", ""}});
  const std::uint64_t offset = test::chunk_offset(path, "/image", 50);
  {
    File raw(path, O_RDWR);
    const std::byte damaged{0x77};
    raw.write_at(std::span(&damaged, 1), offset + 3);
  }
  const auto file = Hdf5File::open(path);
  EXPECT_EQ(read_rows<std::uint8_t>(*file, "/image", 0, 50, Dtype::u8), std::vector<std::uint8_t>(200, 9));
  expect_error(ExitCode::data, {"d.h5:/image", "rows 50 to 60", "checksum"},
               [&] { static_cast<void>(read_rows<std::uint8_t>(*file, "/image", 50, 10, Dtype::u8)); });
}

TEST(Hdf5Rows, WrongSizesAndRowsAreRefused) {
  const Folder folder;
  write_raw(folder.path() / "s.h5", {{"/x", "u8", {4, 2}, counted(8), {}, "", ""}});
  const auto file = Hdf5File::open(folder.path() / "s.h5");
  std::vector<std::byte> bytes(4);
  expect_error(ExitCode::internal, {"s.h5:/x", "rows 3 to 5", "4"}, [&] { file->read("/x", 3, 2, Dtype::u8, bytes); });
  expect_error(ExitCode::internal, {"s.h5:/x", "1 rows take 2 bytes", "has 4"},
               [&] { file->read("/x", 0, 1, Dtype::u8, bytes); });
  file->read("/x", 4, 0, Dtype::u8, {});
  const auto written = Hdf5File::create(folder.path() / "t.h5");
  written->create_dataset("/x", Shape({4}), Dtype::u8, {2});
  expect_error(ExitCode::internal, {"t.h5:/x", "no offset"}, [&] { static_cast<void>(written->offset("/x")); });
  written->close();
  expect_error(ExitCode::internal, {"t.h5", "closed"}, [&] { static_cast<void>(written->info("/x")); });
}

TEST(Hdf5Rows, ThreadsShareTheLibrary) {
  const Folder folder;
  write_raw(folder.path() / "t.h5", {{"/x", "i32be", {2000}, counted(2000), {64}, "shuffle deflate", ""}});
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        const auto file = Hdf5File::open(folder.path() / "t.h5");
        const auto first = static_cast<std::int64_t>(t) * 100 + round;
        const auto rows = read_rows<std::int32_t>(*file, "/x", first, 500, Dtype::i32);
        for (std::size_t i = 0; i < rows.size(); ++i) wrong[t] += rows[i] != first + static_cast<std::int64_t>(i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

}  // namespace
}  // namespace trireme::io
