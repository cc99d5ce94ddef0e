// One rank without a launcher: no MPI, events as with it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "core/base/error.h"
#include "core/comm/bootstrap.h"

namespace trireme::comm {
namespace {

class Single : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
      unsetenv(name);
  }
};

TEST_F(Single, SumsAndAgreementsAreWhatItHas) {
  EXPECT_FALSE(started_by_launcher());
  Group group = connect({});
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  EXPECT_EQ(group.local_rank(), 0);
  EXPECT_EQ(group.local_size(), 1);
  std::vector<float> data{1, 2, 3};
  std::vector<double> squares{-1}, wide{4, 5};
  group.tree_reduce(data, squares).synchronize();
  group.tree_reduce(wide).synchronize();
  group.all_reduce(std::span<float>(data)).synchronize();
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(squares, (std::vector<double>{-1}));
  EXPECT_EQ(wide, (std::vector<double>{4, 5}));
  Words words;
  words.max[3] = 8;
  const device::Event event = group.agree(words);
  event.synchronize();
  EXPECT_EQ(words.max[3], 8u);
  EXPECT_TRUE(event.done());
  EXPECT_GT(event.time(), 0.0);
  EXPECT_EQ(group.all_gather_now("alone"), std::vector<std::string>{"alone"});
  std::string text = "kept";
  group.broadcast_now(text, 0);
  EXPECT_EQ(text, "kept");
  group.barrier_now();
  const std::pair<std::string, std::string> values[] = {{"job", "x"}};
  check_alike(group, values);
  EXPECT_TRUE(group.finish());
}

TEST_F(Single, RanksThatCannotFindEachOtherAreRefused) {
  setenv("SLURM_PROCID", "1", 1);
  setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  try {
    const Group group = connect({});
    FAIL() << "two ranks, each alone";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("--mpi=pmix"), std::string::npos);
  }
}

TEST_F(Single, AHangEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Options options;
        options.watchdog_s = 0.3;
        const Group group = connect(options);
        group.progress(41, "forward");
        while (true) sleep(1);
      },
      testing::ExitedWithCode(71), "no progress for 0.3 s in step 41, phase forward");
}

TEST_F(Single, ProgressKeepsTheWatchdogQuiet) {
  Options options;
  options.watchdog_s = 0.5;
  Group group = connect(options);
  for (std::uint64_t step = 0; step < 12; ++step) {
    group.progress(step, "forward");
    usleep(100'000);
  }
  for (std::uint64_t round = 0; round < 12; ++round) {  // one step and phase, told in parts
    group.progress(12, "evaluation", round);
    usleep(100'000);
  }
  EXPECT_TRUE(group.finish());
  usleep(700'000);
}

}  // namespace
}  // namespace trireme::comm
