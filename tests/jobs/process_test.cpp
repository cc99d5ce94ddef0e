// The helper itself: codes, output, time limits, and that it finds what a run leaves behind.
#include "tests/jobs/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace trireme::tests {
namespace {

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.command = {"sh", "-c", script};
  return options;
}

TEST(Process, CodeOutputAndEnvironment) {
  ProcessOptions options = shell("echo out $WORD; echo err >&2; exit 7");
  options.environment = {{"WORD", "here"}};
  const Finished finished = run_process(options);
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_EQ(finished.output, "out here\nerr\n");
  EXPECT_TRUE(finished.left_behind.empty());
}

TEST(Process, LinesArriveWhileItRunsAndSignalsReachIt) {
  ProcessOptions options = shell("trap 'exit 3' TERM; echo ready; while true; do sleep 0.05; done");
  options.on_line = [](const std::string& line, pid_t pid) {
    if (line == "ready") ::kill(pid, SIGTERM);
  };
  const Finished finished = run_process(options);
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_LT(finished.seconds, 30);
}

TEST(Process, TimeLimitKillsAllOfIt) {
  ProcessOptions options = shell("sleep 1000 & sleep 1000");
  options.timeout_s = 0.3;
  const Finished finished = run_process(options);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(finished.left_behind.empty());
}

TEST(Process, WaitsForOrphansAndCountsThem) {
  const Finished finished = run_process(shell("setsid sleep 1 & exit 0"));
  EXPECT_GT(finished.gone_after_s, 0.8);
  EXPECT_TRUE(finished.left_behind.empty());
}

}  // namespace
}  // namespace trireme::tests
