// Which checkpoints stay after commits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using small_run::Folder;
using small_run::Ranks;
using small_run::State;

std::vector<std::uint64_t> steps_in(const fs::path& folder) {
  std::vector<std::uint64_t> steps;
  for (const auto& checkpoint : list_checkpoints(folder)) steps.push_back(read_manifest(checkpoint).scalars.step);
  return steps;
}

TEST(Retention, KeepsTheNewest) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 2, "a", 2);
  for (std::uint64_t step = 1; step <= 5; ++step) ranks.save(step, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5, 4}));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename().string().substr(0, 5), "step-");  // no trash is left
  }
}

TEST(Retention, KeepsTheNewestBestBesides) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 1, "a", 2);
  ranks.save(1, state, true);
  for (std::uint64_t step = 2; step <= 4; ++step) ranks.save(step, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{4, 3, 1}));
  ranks.save(5, state, true);  // the new best lets the old one go
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5, 4}));
  ranks.save(6, state);
  ranks.save(7, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{7, 6, 5}));
}

TEST(Retention, TheBestIsKnownAfterARestart) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks(folder.path(), 1, "a", 2).save(1, state, true);
  for (std::uint64_t step = 2; step <= 5; ++step)
    Ranks(folder.path(), 2, "b" + std::to_string(step), 2).save(step, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5, 4, 1}));
}

TEST(Retention, WhatWasSetAsideIsNotCountedAndNotTouched) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 1, "a", 2);
  ranks.save(1, state);
  set_aside(folder.path() / "step-000000000001", "test");
  for (std::uint64_t step = 2; step <= 4; ++step) ranks.save(step, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{4, 3}));
  EXPECT_TRUE(fs::exists(folder.path() / "set-aside-step-000000000001/manifest.json"));
}

// A run that goes on from an older checkpoint, below newer ones.
TEST(Retention, WhatWasJustCommittedStays) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks before(folder.path(), 1, "a", 2);
  for (std::uint64_t step = 7; step <= 9; ++step) before.save(step, state);
  Ranks after(folder.path(), 1, "b", 2);
  after.save(3, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{9, 8, 3}));
}

// A folder in the manifest's place stands for a read that fails for the moment (EISDIR as EIO would): not damage.
TEST(Retention, ABestThatCannotBeReadNowStaysAndIsNotTakenForTheBest) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  const fs::path manifest = folder.path() / "step-000000000002/manifest.json", kept = folder.path() / "kept.json";
  Ranks ranks(folder.path(), 1, "a", 2);
  ranks.save(1, state, true);
  ranks.save(2, state, true);
  fs::rename(manifest, kept);
  fs::create_directory(manifest);
  for (std::uint64_t step = 3; step <= 4; ++step) ranks.save(step, state);
  EXPECT_TRUE(fs::exists(manifest.parent_path()));
  EXPECT_TRUE(fs::exists(folder.path() / "step-000000000001"));  // as far as can be seen, it is the best
  fs::remove(manifest);
  fs::rename(kept, manifest);
  ranks.save(5, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5, 4, 2}));
}

// Damaged for good: it is no best, and must not be kept for ever.
TEST(Retention, ADamagedBestGoes) {
  const Folder folder("retention", testing::TempDir());
  const State state;
  Ranks ranks(folder.path(), 1, "a", 2);
  ranks.save(1, state, true);
  std::ofstream(folder.path() / "step-000000000001/manifest.json") << "no manifest";
  for (std::uint64_t step = 2; step <= 3; ++step) ranks.save(step, state);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{3, 2}));
}

}  // namespace
}  // namespace trireme::io
