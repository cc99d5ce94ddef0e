// launch() with fake ranks: which exit code comes out, what becomes of summary.json, and that nothing is left behind.
#include "core/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "core/launch/outcome.h"

namespace trireme::launch {
namespace {

using std::filesystem::path;
using testing::HasSubstr;

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("SLURM_JOB_ID");
    folder_ = path(testing::TempDir()) / ("launch-" + std::to_string(::getpid()) + "-" +
                                          testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // In a process of its own: launch() keeps signals blocked for good. Its stderr goes to a file.
  pid_t start(std::vector<std::string> words) {
    words.insert(words.begin(), "fake");
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    if (std::freopen((folder_ / "stderr").c_str(), "w", stderr) == nullptr) ::_exit(1);
    int code = 1;
    try {
      code = launch({1, words, folder_, false});
    } catch (const std::exception& error) {
      std::fprintf(stderr, "exception: %s\n", error.what());
    }
    ::_exit(code);
  }
  static int end_of(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(std::vector<std::string> words) { return end_of(start(std::move(words))); }

  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  static bool within(double seconds, const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return holds();
  }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  path folder_;
};

TEST_F(Launch, SummaryDecidesTheCode) {
  const std::string summary = R"({"result": "diverged", "attempt": "b", "exit_code": 72, "first_cause": "NaN in fc1"})";
  EXPECT_EQ(run({"summary", file("summary.json"), summary, "exit", "1"}), 72);
  EXPECT_THAT(read("stderr"), HasSubstr("exit code 72; first cause: NaN in fc1"));
}

TEST_F(Launch, DoneIsSilent) {
  const std::string summary = R"({"result": "done", "attempt": "b", "exit_code": 0})";
  EXPECT_EQ(run({"summary", file("summary.json"), summary, "exit", "0"}), 0);
  EXPECT_EQ(read("stderr"), "");
}

TEST_F(Launch, KilledRunIsCompletedAsDied) {
  const std::string summary = R"({"result": "running", "attempt": "b", "steps": 7})";
  EXPECT_EQ(run({"summary", file("summary.json"), summary, "say", "noise", "say", "[rank 1 n7] error: lost rank 0",
                 "say", "[rank 0 n6] error: second", "kill"}),
            71);
  const auto outcome = read_outcome(folder_);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->result, "died");
  EXPECT_EQ(outcome->exit_code, 71);
  EXPECT_EQ(outcome->first_cause, "[rank 1 n7] error: lost rank 0");
  EXPECT_THAT(read("summary.json"), HasSubstr("\"steps\": 7"));  // the rest stays
  // All lines are passed on; the first cause comes last.
  EXPECT_THAT(read("stderr"), HasSubstr("noise\n[rank 1 n7] error: lost rank 0\n[rank 0 n6] error: second\n"));
  const std::string said = read("stderr");
  EXPECT_THAT(said.substr(said.rfind('\n', said.size() - 2)), HasSubstr("first cause: [rank 1 n7] error: lost rank 0"));
}

TEST_F(Launch, OldSummaryIsNotTakenForThisRun) {
  std::ofstream(folder_ / "summary.json") << R"({"result": "stopped", "attempt": "a", "exit_code": 75})";
  EXPECT_EQ(run({"say", "error: unknown key", "exit", "64"}), 64);
  EXPECT_THAT(read("summary.json"), HasSubstr("stopped"));
}

// A second launch beside a live run is refused; the summary is the live run's.
TEST_F(Launch, RunningSummaryOfAnotherRunIsLeftAlone) {
  const std::string summary = R"({"result": "running", "attempt": "a"})";
  std::ofstream(folder_ / "summary.json") << summary;
  EXPECT_EQ(run({"say", "error: another run works here", "exit", "64"}), 64);
  EXPECT_EQ(read("summary.json"), summary);
  EXPECT_EQ(run({"kill"}), 71);
  EXPECT_EQ(read("summary.json"), summary);
}

// The same where the live run began to write only after the second launch had looked.
TEST_F(Launch, RunThatBeganMeanwhileIsLeftAlone) {
  const std::string summary = R"({"result": "running", "attempt": "a", "launch": "another-launcher"})";
  EXPECT_EQ(run({"summary", file("summary.json"), summary, "exit", "64"}), 64);
  EXPECT_EQ(read("summary.json"), summary);
  const std::string done = R"({"result": "stopped", "attempt": "c", "launch": "another-launcher", "exit_code": 75})";
  EXPECT_EQ(run({"summary", file("summary.json"), done, "exit", "64"}), 64);
}

TEST_F(Launch, RunThatNamesItsLauncherIsCompleted) {
  EXPECT_EQ(run({"begin", file("summary.json"), "kill"}), 71);
  EXPECT_EQ(read_outcome(folder_)->result, "died");
  EXPECT_FALSE(read_outcome(folder_)->launch.empty());
}

// A rank's error that ended rank 0 before it could write: the run failed, as if rank 0 had met it.
TEST_F(Launch, RunOfWhichAnotherRankToldItsErrorIsCompletedAsFailed) {
  EXPECT_EQ(run({"begin", file("summary.json"), "say", "[rank 1 n7] error: no weights", "exit", "70"}), 70);
  const auto outcome = read_outcome(folder_);
  EXPECT_EQ(outcome->result, "failed");
  EXPECT_EQ(outcome->exit_code, 70);
  EXPECT_EQ(outcome->first_cause, "[rank 1 n7] error: no weights");
}

// As nohup and a script's `&` have it: the signal reaches nobody, and the run goes on.
TEST_F(Launch, IgnoredSignalsStayIgnored) {
  for (const int signal : {SIGHUP, SIGINT}) {
    std::signal(signal, SIG_IGN);
    const pid_t pid = start({"save", file("saved")});
    std::signal(signal, SIG_DFL);
    ASSERT_TRUE(within(20, [&] { return exists("saved.ready"); }));
    ::kill(pid, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(exists("saved")) << "signal " << signal;
    ::kill(pid, SIGTERM);
    EXPECT_EQ(end_of(pid), 75);
    EXPECT_EQ(read("saved"), "SIGUSR1");
    std::filesystem::remove(folder_ / "saved");
    std::filesystem::remove(folder_ / "saved.ready");
  }
}

// Whatever the launcher's caller has blocked or ignored.
TEST_F(Launch, RanksStartWithTheNormalMask) {
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  std::signal(SIGPIPE, SIG_IGN);
  const pid_t pid = start({"signals", file("signals")});
  std::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(end_of(pid), 0);
  EXPECT_EQ(read("signals"), "0 blocked, PIPE default");
}

TEST_F(Launch, UnknownCodesBecomeLostPeer) { EXPECT_EQ(run({"exit", "134"}), 71); }

TEST_F(Launch, TermAsksTheRanksToSave) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const pid_t pid = start({"save", file("saved")});
    ASSERT_TRUE(within(20, [&] { return exists("saved.ready"); }));
    ::kill(pid, signal);
    EXPECT_EQ(end_of(pid), 75);
    EXPECT_EQ(read("saved"), "SIGUSR1");
    std::filesystem::remove(folder_ / "saved.ready");
  }
}

TEST_F(Launch, SecondTermEndsAtOnce) {
  const pid_t pid = start({"stubborn", file("rank")});
  ASSERT_TRUE(within(20, [&] { return exists("rank.ready"); }));
  ::kill(pid, SIGTERM);
  ::kill(pid, SIGTERM);  // at once: Slurm and shells often send a signal twice
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "the first TERM, doubled, already ended the ranks";
  ::kill(pid, SIGTERM);
  EXPECT_EQ(end_of(pid), 71);
}

TEST_F(Launch, LeavesNoOrphan) {
  EXPECT_EQ(run({"orphan", file("orphan"), "exit", "0"}), 0);
  const int orphan = std::stoi(read("orphan"));
  EXPECT_TRUE(within(5, [&] { return ::kill(orphan, 0) != 0 && errno == ESRCH; }))
      << "process " << orphan << " is left";
}

TEST_F(Launch, RanksSaveWhenTheLauncherIsKilled) {
  const pid_t pid = start({"save", file("saved")});
  ASSERT_TRUE(within(20, [&] { return exists("saved.ready"); }));
  ::kill(pid, SIGKILL);
  end_of(pid);
  EXPECT_TRUE(within(10, [&] { return exists("saved"); }));
  EXPECT_EQ(read("saved"), "SIGUSR1");
}

}  // namespace
}  // namespace trireme::launch
