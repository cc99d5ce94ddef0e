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

}  // namespace
}  // namespace trireme::io
