// kill -9 of one rank wherever it may hurt: all ranks leave soon, and the next start ends in the undisturbed run's
// bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

const JobResult& undisturbed() {
  static const TestFolder folder("undisturbed");
  static const JobResult result = run_job(2, small_job(folder.path()));
  return result;
}

// Where the rank dies, and on how many ranks the run goes on.
struct Death {
  const char* name;
  int ranks;
  const char* fault;
  int resumed_on;
};

void PrintTo(const Death& death, std::ostream* to) { *to << death.fault; }

class Kill : public testing::TestWithParam<Death> {};

TEST_P(Kill, ThenTheSameBits) {
  ASSERT_EQ(undisturbed().exit_code, 0) << undisturbed().output;
  const Death& death = GetParam();
  const TestFolder folder("kill");
  Faults faults;
  faults.inject = death.fault;
  const JobResult killed = run_job(death.ranks, small_job(folder.path()), faults);
  EXPECT_THAT(killed.output, HasSubstr("fault: rank "));
  expect_gone(killed, 71);
  // Rank 0 alone writes the summary; where it died, the launcher has completed it.
  EXPECT_THAT(summary_of(killed, "result"), AnyOf("died", "failed")) << killed.output;
  if (std::string(death.fault).find("rank=0") == 0) {
    EXPECT_EQ(summary_of(killed, "result"), "died");
  }
  EXPECT_EQ(summary_of(killed, "exit_code"), "71");
  EXPECT_NE(summary_of(killed, "first_cause"), "");
  expect_same_end(run_job(death.resumed_on, small_job(folder.path(), {"--resume", "auto"})), undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Events, Kill,
                         testing::Values(Death{"FirstStep", 2, "rank=1,event=first_step", 2},
                                         Death{"NextBatch", 2, "rank=1,event=next_batch,count=25", 4},
                                         Death{"Forward", 2, "rank=0,event=forward,count=37", 1},
                                         Death{"Backward", 4, "rank=3,event=backward,count=21", 2},
                                         Death{"BetweenBuckets", 2, "rank=0,event=between_buckets,count=50", 2},
                                         Death{"WritingSlice", 2, "rank=1,event=writing_slice,count=5", 1},
                                         Death{"BeforeManifest", 2, "rank=0,event=before_manifest,count=2", 4},
                                         Death{"AfterManifest", 2, "rank=0,event=after_manifest,count=1", 2},
                                         Death{"AfterRename", 2, "rank=0,event=after_rename,count=3", 1},
                                         Death{"Evaluation", 2, "rank=1,event=evaluation,count=6", 2},
                                         Death{"LastEvaluation", 4, "rank=2,event=evaluation,count=18", 1}),
                         [](const auto& test) { return std::string(test.param.name); });

// A launcher that goes on without the dead rank: the others find out by themselves.
TEST(KillUnderMpirun, EnableRecovery) {
  const TestFolder folder("recovery");
  Faults faults;
  faults.environment = {{"TRIREME_MPIRUN_OPTIONS", "--enable-recovery"}};
  faults.inject = "rank=1,event=backward,count=33";
  const JobResult killed = run_job(2, small_job(folder.path()), faults);
  expect_gone(killed, 71);  // though mpirun itself may end with 0 then
  expect_same_end(run_job(4, small_job(folder.path(), {"--resume", "must"})), undisturbed());
}

// The others sit in a step of 30 s, where only the communication thread can act.
TEST(KillUnderMpirun, EnableRecoveryInALongStep) {
  const TestFolder folder("long-step");
  Faults faults;
  faults.environment = {{"TRIREME_MPIRUN_OPTIONS", "--enable-recovery"}};
  faults.inject = "rank=1,event=forward,count=41,action=delay,ms=30000;rank=0,event=forward,count=41";
  const JobResult killed = run_job(2, small_job(folder.path()), faults);
  expect_gone(killed, 71);  // though mpirun itself may end with 0 then
  expect_same_end(run_job(1, small_job(folder.path(), {"--resume", "auto"})), undisturbed());
}

// An error of one rank alone ends it before anything is torn down: the writer, whose slice takes 30 s more, is not
// waited for.
TEST(ErrorOfOneRank, EndsItAtOnce) {
  const TestFolder folder("throw");
  Faults faults;
  faults.inject = "rank=1,event=writing_slice,action=delay,ms=30000;rank=1,event=forward,count=24,action=throw";
  const JobResult failed = run_job(2, small_job(folder.path()), faults);
  EXPECT_THAT(failed.output, HasSubstr("fault: rank 1 reached writing_slice"));
  EXPECT_THAT(failed.output, HasSubstr("fault: rank 1 reached forward 24"));
  expect_gone(failed, 70);
}

// Evaluations and saves that take longer than train.watchdog_s, but move: no hang.
TEST(Watchdog, LeavesSlowEvaluationsAndSavesAlone) {
  const TestFolder folder("slow");
  Faults faults;
  faults.inject =
      "rank=1,event=evaluation,count=5,action=delay,ms=500;rank=1,event=writing_slice,count=10,action=delay,ms=700";
  expect_same_end(run_job(2, small_job(folder.path(), {}, {"train.watchdog_s=1"}), faults), undisturbed());
}

}  // namespace
}  // namespace trireme::tests
