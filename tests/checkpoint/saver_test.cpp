// Saving: what a snapshot holds, the two phases of a commit, the state of the saver between.
#include "io/checkpoint/saver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/base/error.h"
#include "io/hdf5/hdf5.h"
#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using small_run::Folder;
using small_run::load;
using small_run::Ranks;
using small_run::scalars_at;
using small_run::State;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ArenaState, SlicesAreWholeTilesAndCoverTheArena) {
  const State state;
  for (const ArenaState& arena : state.arenas()) {
    for (std::uint64_t count : {1u, 2u, 3u, 4u, 7u}) {
      std::uint64_t at = 0;
      for (std::uint64_t index = 0; index < count; ++index) {
        const Range range = arena.slice(index, count);
        EXPECT_EQ(range.begin, at);
        EXPECT_TRUE(range.begin % tile_elements == 0 || range.empty());
        at = range.end;
      }
      EXPECT_EQ(at, arena.elements());
    }
  }
  // 4 tiles over 3: tiles [0, 1), [1, 2), [2, 4).
  EXPECT_EQ(state.arenas()[0].slice(1, 3), (Range{tile_elements, 2 * tile_elements}));
  EXPECT_EQ(state.arenas()[0].slice(2, 3), (Range{2 * tile_elements, 4 * tile_elements}));
  EXPECT_THROW((void)state.arenas()[0].slice(3, 3), Error);
}

TEST(Exact, DoublesComeBackBitForBit) {
  EXPECT_EQ(exact(3.0), "0x1.8p+1");
  for (const double value : {0.0, -0.0, 0.1, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, -2.5}) {
    const double back = exact_double(exact(value));
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << exact(value);
  }
  EXPECT_TRUE(std::isnan(exact_double(exact(std::nan("")))));
  EXPECT_EQ(exact_double(exact(-INFINITY)), -INFINITY);
  EXPECT_THROW((void)exact_double("0x1.8p+1 "), Error);
  EXPECT_THROW((void)exact_double(""), Error);
}

TEST(Saver, WhatWasSavedIsLoaded) {
  const Folder folder("saver", testing::TempDir());
  State state;
  state.fill(1);
  Ranks ranks(folder.path(), 2, "a1");
  ranks.save(200, state);
  State loaded;
  const Manifest manifest = load(folder.path() / "step-000000000200", loaded);
  EXPECT_TRUE(loaded == state);
  EXPECT_EQ(manifest.scalars.step, 200u);
  EXPECT_EQ(manifest.scalars.cursor, 200u * 128 + 7);
  EXPECT_EQ(manifest.scalars.world_size, 2u);
  EXPECT_EQ(manifest.scalars.micro_batches, 8u);
  EXPECT_FALSE(manifest.scalars.evaluation_due);
  EXPECT_EQ(manifest.scalars.values, scalars_at(200, 2).values);
  EXPECT_EQ(manifest.scalars.identity, scalars_at(200, 2).identity);
  EXPECT_EQ(manifest.scalars.notes.at("threads"), "2");
  EXPECT_EQ(names_in(folder.path() / "step-000000000200"),
            (std::vector<std::string>{"manifest.json", "slice-00000-of-00002.h5", "slice-00001-of-00002.h5"}));
}

// The bulk goes past HDF5; any HDF5 tool must still see it.
TEST(Saver, SlicesAreOrdinaryHdf5) {
  const Folder folder("saver", testing::TempDir());
  State state;
  state.fill(2);
  for (std::byte& byte : state.memory("parameters")) byte &= std::byte{0x3F};  // finite floats
  Ranks(folder.path(), 2, "a1").save(5, state);
  const auto file = Hdf5File::open(folder.path() / "step-000000000005/slice-00001-of-00002.h5");
  EXPECT_EQ(file->datasets(), (std::vector<std::string>{"/blocks", "/buffers", "/moment1", "/parameters", "/sums"}));
  const std::int64_t half = 2 * static_cast<std::int64_t>(tile_elements);
  EXPECT_EQ(file->info("/parameters").shape, Shape{half});
  std::vector<std::byte> read(static_cast<std::size_t>(half) * 4);
  file->read("/parameters", 0, half, Dtype::f32, read);
  EXPECT_EQ(std::memcmp(read.data(), state.memory("parameters").data() + read.size(), read.size()), 0);
  EXPECT_EQ(file->attribute("step"), "5");
}

TEST(Saver, NothingIsListedBeforeTheCommit) {
  const Folder folder("saver", testing::TempDir());
  State state;
  state.fill(3);
  Ranks ranks(folder.path(), 2, "a1");
  EXPECT_EQ(ranks[0].written(), 0u);
  ranks.snapshot(scalars_at(7, 2), state);
  EXPECT_TRUE(ranks[0].busy());
  ranks.wait();
  EXPECT_EQ(ranks[0].written(), 7u);
  EXPECT_EQ(ranks[1].written(), 7u);
  EXPECT_EQ(ranks[0].committed(), 0u);
  EXPECT_TRUE(list_checkpoints(folder.path()).empty());
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{".step-000000000007.a1"});
  ranks.commit(7);
  EXPECT_EQ(ranks[0].committed(), 7u);
  EXPECT_EQ(ranks[1].committed(), 7u);
  EXPECT_FALSE(ranks[0].busy());
  EXPECT_FALSE(ranks[1].busy());
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"step-000000000007"});
}

TEST(Saver, TrainingGoesOnWhileItWrites) {
  const Folder folder("saver", testing::TempDir());
  State state, expected;
  state.fill(4);
  expected.fill(4);
  Ranks ranks(folder.path(), 1, "a1");
  ranks.snapshot(scalars_at(1, 1), state);
  state.fill(5);  // the next step's update
  ranks.wait();
  ranks.commit(1);
  State loaded;
  load(folder.path() / "step-000000000001", loaded);
  EXPECT_TRUE(loaded == expected);
  EXPECT_GT(ranks[0].stalled(), 0.0);
}

TEST(Saver, RefusesASecondSnapshotBeforeTheCommit) {
  const Folder folder("saver", testing::TempDir());
  State state;
  Ranks ranks(folder.path(), 1, "a1");
  ranks.snapshot(scalars_at(1, 1), state);
  EXPECT_THROW(ranks.snapshot(scalars_at(2, 1), state), Error);
  EXPECT_THROW(ranks[0].commit(2), Error);
  ranks.wait();
  ranks.commit(1);
  ranks.commit(1);  // said again: nothing happens
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 1u);
  EXPECT_THROW(ranks[0].commit(2), Error);  // nothing is being saved
  ranks.snapshot(scalars_at(2, 1), state);
  ranks.wait();
  ranks.commit(2);
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 2u);
}

TEST(Saver, MoreRanksThanTiles) {
  const Folder folder("saver", testing::TempDir());
  State state;
  state.fill(6);
  Ranks(folder.path(), 7, "a1").save(3, state);
  State loaded;
  const Manifest manifest = load(folder.path() / "step-000000000003", loaded, 3);
  EXPECT_TRUE(loaded == state);
  EXPECT_EQ(manifest.slices.size(), 7u);
  // Rank 0 of 7 holds no tile of anything: parameters have 4, [0, 4·1÷7) is empty.
  EXPECT_TRUE(manifest.slices[0].offsets.empty());
}

// A resume that ends where it began saves its step again (an evaluation was due and is done now): the old one must stay
// until the new one is committed.
TEST(Saver, AStepSavedAgainReplacesTheOldOne) {
  const Folder folder("saver", testing::TempDir());
  State first, second;
  first.fill(7);
  second.fill(8);
  Ranks(folder.path(), 2, "a1").save(10, first);
  for (const char* attempt : {"a2", "a3"}) {
    Ranks ranks(folder.path(), 1, attempt);
    ranks.snapshot(scalars_at(10, 1), second);
    ranks.wait();
    EXPECT_EQ(list_checkpoints(folder.path()).size(), 1u);
    ranks.commit(10);
    ASSERT_EQ(list_checkpoints(folder.path()).size(), 1u);
    State loaded;
    load(list_checkpoints(folder.path()).front(), loaded);
    EXPECT_TRUE(loaded == second);
    second.fill(9);
  }
  // Within one start as well: written() and committed() start over.
  Ranks ranks(folder.path(), 1, "a4");
  ranks.save(11, first);
  ranks.snapshot(scalars_at(11, 1), second);
  ranks.wait();
  EXPECT_EQ(ranks[0].written(), 11u);
  EXPECT_TRUE(ranks[0].busy());
  ranks.commit(11);
  State loaded;
  load(list_checkpoints(folder.path()).front(), loaded);
  EXPECT_TRUE(loaded == second);
}

TEST(Saver, AWritersErrorIsThrownByTheNextCallAndNamesThePath) {
  const Folder folder("saver", testing::TempDir());
  State state;
  Ranks ranks(folder.path(), 1, "a1");
  std::ofstream(folder.path() / ".step-000000000004.a1") << "in the way";  // a file where the folder must come
  ranks.snapshot(scalars_at(4, 1), state);
  try {
    ranks.wait();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find(".step-000000000004.a1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank 0"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)ranks[0].written(), Error);
  EXPECT_THROW(ranks.snapshot(scalars_at(5, 1), state), Error);
}

// The lease is lost after all ranks have written: nothing is committed, nothing is deleted.
TEST(Saver, CommitsAndDeletesOnlyWhileItOwnsTheFolder) {
  const Folder folder("saver", testing::TempDir());
  const State state;
  int allowed = 6;  // looks: two for each save
  const auto check = [&allowed] {
    if (allowed-- <= 0) fail(ExitCode::io, "this run no longer owns its directory");
  };
  Ranks ranks(folder.path(), 1, "a1", 2, check);
  for (std::uint64_t step = 1; step <= 2; ++step) ranks.save(step, state);
  allowed = 1;  // lost between the commit and retention
  try {
    ranks.save(3, state);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_NE(std::string(error.what()).find("no longer owns"), std::string::npos) << error.what();
  }
  EXPECT_EQ(list_checkpoints(folder.path()).size(), 3u);
  Ranks late(folder.path(), 1, "a2", 2, [] { fail(ExitCode::io, "this run no longer owns its directory"); });
  late.snapshot(scalars_at(4, 1), state);
  late.wait();
  EXPECT_EQ(late[0].written(), 4u);
  EXPECT_THROW(late.commit(4), Error);
  EXPECT_EQ(list_checkpoints(folder.path()).front().filename(), "step-000000000003");
}

TEST(Saver, KeepLastBelowTwoIsRefused) {
  const Folder folder("saver", testing::TempDir());
  EXPECT_THROW(Saver({folder.path(), 0, 1, "a1", 1}, device::make_cpu()), Error);
}

}  // namespace
}  // namespace trireme::io
