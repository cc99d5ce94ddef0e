// Requests to stop: all ranks save at one step and end with 75; the next start goes on to the undisturbed run's bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/jobs/small_job.h"

namespace trireme::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const JobResult& undisturbed() {
  static const TestFolder folder("undisturbed");
  static const JobResult result = run_job(2, small_job(folder.path()));
  return result;
}

// The signal comes at forward `count` of rank 0; further ones are slow, so that it arrives long before the end.
Faults signal_at(const std::string& event, int count, int number) {
  const std::string at = "rank=0,event=" + event + ",count=";
  Faults faults;
  faults.inject =
      at + std::to_string(count) + ",action=announce;" + at + std::to_string(count + 1) + ",action=delay,ms=100";
  faults.signals = {{"fault: rank 0 reached " + event + " " + std::to_string(count), number}};
  return faults;
}

void expect_stopped(const JobResult& stopped) {
  EXPECT_EQ(stopped.exit_code, 75) << stopped.output;
  EXPECT_THAT(stopped.left_behind, IsEmpty());
  EXPECT_EQ(summary_of(stopped, "result"), "stopped");
  EXPECT_EQ(summary_of(stopped, "exit_code"), "75");
  // Saved where it stopped: the checkpoint has the summary's step, and as many lines of metrics.
  const std::string step = summary_of(stopped, "steps");
  EXPECT_EQ(summary_of(stopped, "last_checkpoint"), step);
  EXPECT_EQ(stopped.checkpoint, "step-" + std::string(12 - step.size(), '0') + step);
  EXPECT_THAT(metrics_of(stopped), HasSubstr("{\"step\":" + std::to_string(std::stoi(step) - 1) + ","));
  EXPECT_THAT(metrics_of(stopped), Not(HasSubstr("{\"step\":" + step + ",\"epoch\"")));
}

class Stop : public testing::TestWithParam<int> {};

TEST_P(Stop, LaunchPassesItOn) {
  ASSERT_EQ(undisturbed().exit_code, 0) << undisturbed().output;
  const TestFolder folder("stop");
  const int ranks = GetParam() == SIGINT ? 4 : 2;
  const JobResult stopped = run_job(ranks, small_job(folder.path()), signal_at("forward", 20, GetParam()));
  expect_stopped(stopped);
  const int others = GetParam() == SIGUSR1 ? 4 : 1;
  expect_same_end(run_job(others, small_job(folder.path(), {"--resume", "must"})), undisturbed());
}

INSTANTIATE_TEST_SUITE_P(Signals, Stop, testing::Values(SIGTERM, SIGINT, SIGUSR1), [](const auto& test) {
  return test.param == SIGTERM ? "Term" : test.param == SIGINT ? "Int" : "Usr1";
});

TEST(StopDirect, MpirunPassesUsr1OnAndOneProcessTakesTerm) {
  const TestFolder folder("direct");
  Faults by_mpirun = signal_at("forward", 20, SIGUSR1);
  by_mpirun.by_mpirun = true;
  expect_stopped(run_job(2, small_job(folder.path()), by_mpirun));
  expect_stopped(run_job(1, small_job(folder.path()), signal_at("forward", 20, SIGTERM)));
  expect_same_end(run_job(2, small_job(folder.path())), undisturbed());
}

// In the middle of an evaluation: the checkpoint says that it is due, and the resume runs it first.
TEST(StopInEvaluation, IsRunAgain) {
  const TestFolder folder("evaluation");
  const JobResult stopped = run_job(2, small_job(folder.path()), signal_at("evaluation", 5, SIGTERM));
  expect_stopped(stopped);
  EXPECT_EQ(summary_of(stopped, "steps"), "15");  // the second evaluation, after (step + 1) · 32 ≥ 2 · 228
  EXPECT_THAT(metrics_of(stopped), Not(HasSubstr("{\"step\":15,\"evaluation\"")));
  const JobResult resumed = run_job(1, small_job(folder.path(), {"--resume", "must"}));
  EXPECT_THAT(metrics_of(resumed), HasSubstr("{\"step\":15,\"evaluation\""));
  expect_same_end(resumed, undisturbed());
}

// The one after the last step too: a run is done once it is evaluated.
TEST(StopInEvaluation, AfterTheLastStepIsNotTheEnd) {
  const TestFolder folder("last-evaluation");
  const JobResult stopped = run_job(2, small_job(folder.path()), signal_at("evaluation", 17, SIGTERM));
  expect_stopped(stopped);  // four rounds each after steps 8, 15, 22 and 29
  EXPECT_EQ(summary_of(stopped, "steps"), "30");
  EXPECT_THAT(stopped.output, HasSubstr("stopped in the evaluation after the last step"));
  EXPECT_THAT(metrics_of(stopped), Not(HasSubstr("{\"step\":30,\"evaluation\"")));
  const JobResult resumed = run_job(2, small_job(folder.path(), {"--resume", "must"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(resumed.state_sha256, undisturbed().state_sha256);  // step 30 is saved anew, with its evaluation
  EXPECT_EQ(metrics_of(resumed), metrics_of(undisturbed()));
}

// The first evaluation has the largest loss, and here that is the best: its checkpoint outlives newer ones.
TEST(StopInEvaluation, TheBestIsKept) {
  const TestFolder folder("best");
  const std::vector<std::string> sets{"eval.best=loss:max", "checkpoint.keep_last=2"};
  const JobResult stopped = run_job(2, small_job(folder.path(), {}, sets), signal_at("evaluation", 2, SIGTERM));
  expect_stopped(stopped);
  EXPECT_EQ(summary_of(stopped, "steps"), "8");
  const JobResult resumed = run_job(2, small_job(folder.path(), {"--resume", "must"}, sets));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(summary_of(resumed, "best_step"), "8");
  TestJob evaluation = small_job(folder.path(), {"--json"}, sets);
  evaluation.command = "eval";
  EXPECT_THAT(run_job(1, evaluation).output, HasSubstr("\"step\": 8,"));
}

// Before the first step there is nothing to save but the start itself.
TEST(StopAtOnce, AndAgain) {
  const TestFolder folder("at-once");
  const JobResult stopped = run_job(2, small_job(folder.path()), signal_at("next_batch", 1, SIGTERM));
  expect_stopped(stopped);
  expect_stopped(run_job(2, small_job(folder.path()), signal_at("next_batch", 1, SIGTERM)));
  expect_same_end(run_job(2, small_job(folder.path())), undisturbed());
}

}  // namespace
}  // namespace trireme::tests
