// Which command starts the ranks: inside a Slurm allocation, outside, and where something is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "core/base/threads.h"
#include "core/launch/launcher.h"
#include "core/launch/slurm.h"

namespace trireme::launch {
namespace {

using std::filesystem::path;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// PATH with one folder of fake programs, and the variables of an allocation.
class Command : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = path(testing::TempDir()) / ("command-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = std::getenv("PATH");
    ::setenv("PATH", folder_.c_str(), 1);
    for (const char* name : {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_CPUS_PER_TASK"}) ::unsetenv(name);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    for (const char* name : {"SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_CPUS_PER_TASK"}) ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }
  void program(const char* name, const std::string& body = "") const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
  }
  static void allocate(const char* tasks, const char* cpus) {
    ::setenv("SLURM_JOB_ID", "77", 1);
    ::setenv("SLURM_NTASKS", tasks, 1);
    ::setenv("SLURM_CPUS_PER_TASK", cpus, 1);
  }
  static std::vector<std::string> of(int ranks) { return command({ranks, {"train", "job.toml"}, {}, false}); }

  path folder_;
  std::string path_;
  const std::string self_ = std::filesystem::read_symlink("/proc/self/exe").string();
};

TEST_F(Command, SrunInsideAnAllocation) {
  program("srun");
  program("mpirun");
  allocate("8", "4");
  EXPECT_THAT(of(0), ElementsAre("srun", "--mpi=pmix", "-n", "8", "--kill-on-bad-exit=1", "--cpus-per-task=4", self_,
                                 "train", "job.toml"));
  EXPECT_THAT(of(2), Contains("2"));
  EXPECT_EQ(of(16).front(), "mpirun");  // more than the allocation has
}

TEST_F(Command, MpirunElsewhere) {
  program("mpirun");
  const int many = 4 * usable_cores();
  const auto words = of(many);
  EXPECT_EQ(words.front(), "mpirun");
  EXPECT_THAT(words, AllOf(Contains(std::to_string(many)), Contains(self_)));
  EXPECT_EQ(words.back(), "job.toml");
}

// Open MPI counts cores without hyper-threads, and the slots of an allocation: what starts is the caller's word.
TEST_F(Command, MpirunNeverCountsSlots) {
  program("mpirun");
  for (const int ranks : {2, usable_cores() + 1}) EXPECT_THAT(of(ranks), Contains("--oversubscribe")) << ranks;
}

TEST_F(Command, MpirunPassesOnWhatRanksElsewhereNeed) {
  program("mpirun");
  const char* const names[] = {"LD_LIBRARY_PATH", "TRIREME_PLUGIN_PATH", "HDF5_PLUGIN_PATH", "HDF5_USE_FILE_LOCKING"};
  for (const char* const name : names) {
    const char* const before = std::getenv(name);
    const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
    ::unsetenv(name);
    EXPECT_THAT(of(2), Not(Contains(name)));
    ::setenv(name, "x", 1);
    const std::vector<std::string> words = of(2);
    const auto at = std::find(words.begin(), words.end(), name);
    ASSERT_TRUE(at != words.end() && at != words.begin()) << name;
    EXPECT_EQ(*std::prev(at), "-x");
    kept ? ::setenv(name, kept->c_str(), 1) : ::unsetenv(name);
  }
}

TEST_F(Command, OneRankNeedsNoMpirun) { EXPECT_THAT(of(0), ElementsAre(self_, "train", "job.toml")); }

TEST_F(Command, MissingMpirunIsSaid) {
  try {
    (void)of(2);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no mpirun on PATH"), HasSubstr("openmpi-bin")));
  }
}

TEST(TimeLeft, AsSqueuePrintsIt) {
  EXPECT_EQ(parse_time_left("5:09\n"), 309.0);
  EXPECT_EQ(parse_time_left("2:00:01"), 7201.0);
  EXPECT_EQ(parse_time_left("1-02:03:04"), 86400.0 + 7384.0);
  for (const char* text : {"UNLIMITED", "NOT_SET", "INVALID", "", "1:2:3:4", "-1:00", "x-1:00:00", "17"}) {
    EXPECT_EQ(parse_time_left(text), std::nullopt) << text;
  }
}

TEST_F(Command, DeadlineComesFromSqueue) {
  program("squeue", "[ \"$3\" = 77 ] && echo 10:00");
  ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1);
  const auto deadline = slurm_deadline({"77", 1, 0});
  ASSERT_TRUE(deadline);
  EXPECT_NEAR(*deadline, static_cast<double>(std::time(nullptr)) + 600.0, 30.0);
  EXPECT_FALSE(slurm_deadline({"78", 1, 0}));
}

}  // namespace
}  // namespace trireme::launch
