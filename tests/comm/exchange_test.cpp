// Agreement, broadcast, gathering, and the check that all ranks start alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/comm/ranks.h"

namespace trireme::comm {
namespace {

using testing::HasSubstr;

TEST(Group, KnowsItsRanks) {
  EXPECT_GE(world().rank(), 0);
  EXPECT_LT(world().rank(), world().size());
  EXPECT_EQ(world().local_size(), world().size());  // one host
  EXPECT_EQ(world().local_rank(), world().rank());
}

TEST(Agree, MaximaAndMinimaOfAll) {
  for (std::uint64_t round = 0; round < 50; ++round) {
    Words words;
    const auto rank = static_cast<std::uint64_t>(world().rank()), ranks = static_cast<std::uint64_t>(world().size());
    for (std::uint64_t i = 0; i < 8; ++i) {
      words.max[i] = 100 * i + (rank + i + round) % ranks;
      words.min[i] = 1000 * i + (rank + i + round) % ranks + (i == 7 ? ~std::uint64_t{0} - 9000 : 0);
    }
    world().agree(words).synchronize();
    for (std::uint64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(words.max[i], 100 * i + ranks - 1);
      EXPECT_EQ(words.min[i], 1000 * i + (i == 7 ? ~std::uint64_t{0} - 9000 : 0));
    }
  }
}

TEST(Broadcast, EveryRootReachesAll) {
  for (int root = 0; root < world().size(); ++root) {
    std::vector<int> data(100'000, world().rank() == root ? 7 + root : 0);
    world().broadcast(std::as_writable_bytes(std::span(data)), root).synchronize();
    EXPECT_EQ(data, std::vector<int>(100'000, 7 + root));
    std::string text = world().rank() == root ? "attempt " + std::to_string(root) : "old";
    world().broadcast_now(text, root);
    EXPECT_EQ(text, "attempt " + std::to_string(root));
  }
  std::string empty = world().rank() == 0 ? "" : "old";
  world().broadcast_now(empty, 0);
  EXPECT_EQ(empty, "");
}

TEST(AllGather, InRankOrder) {
  const auto ranks = static_cast<std::size_t>(world().size());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
    const std::vector<int> mine(size, world().rank() + 1);
    std::vector<int> all(size * ranks, -1), expected;
    for (std::size_t r = 0; r < ranks; ++r) expected.insert(expected.end(), size, static_cast<int>(r) + 1);
    world().all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))).synchronize();
    EXPECT_EQ(all, expected);
  }
  const auto texts = world().all_gather_now(std::string(static_cast<std::size_t>(world().rank()) * 3, 'x'));
  ASSERT_EQ(texts.size(), ranks);
  for (std::size_t r = 0; r < ranks; ++r) EXPECT_EQ(texts[r], std::string(r * 3, 'x'));
}

TEST(Barrier, NobodyPassesBeforeTheLastCame) {
  for (int i = 0; i < 20; ++i) world().barrier_now();
}

TEST(CheckAlike, AlikeIsFine) {
  const std::pair<std::string, std::string> values[] = {{"job", "a = 1\n"}, {"plugin", "0123"}, {"empty", ""}};
  check_alike(world(), values);
}

TEST(CheckAlike, EveryRankNamesKeyValuesAndRanks) {
  if (world().size() == 1) return;
  const bool last = world().rank() == world().size() - 1;
  const std::pair<std::string, std::string> values[] = {
      {"version", "0.1.0"}, {"plugin convnet", last ? "beef" : "cafe"}, {"zzz", std::to_string(world().rank())}};
  const auto check = [](std::span<const std::pair<std::string, std::string>> given) {
    try {
      check_alike(world(), given);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  // Only the last rank has another plugin; rank 1 differs in zzz, too.
  const std::string found = check(std::span(values).first(2));
  EXPECT_THAT(found, HasSubstr("plugin convnet"));
  EXPECT_THAT(found, HasSubstr("rank 0 has 'cafe'"));
  EXPECT_THAT(found, HasSubstr("rank " + std::to_string(world().size() - 1) + " has 'beef'"));
  const auto all = world().all_gather_now(check(values));
  EXPECT_TRUE(std::ranges::all_of(all, [&](const std::string& text) { return text == all[0]; })) << all[0];
  const std::string missing = check(std::span(values).first(last ? 1 : 2));
  EXPECT_THAT(missing, HasSubstr("no such key"));
}

TEST(CheckAlike, LongValuesAreShownWhereTheyDiffer) {
  if (world().size() == 1) return;
  std::string job(4000, 'a');
  if (world().rank() == 1) job.replace(3000, 6, "batch!");
  const std::pair<std::string, std::string> values[] = {{"job", job}};
  try {
    check_alike(world(), values);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch!"));
    EXPECT_LT(std::strlen(error.what()), 600u);
  }
}

}  // namespace
}  // namespace trireme::comm
