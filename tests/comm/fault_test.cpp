// When a rank dies, freezes, hangs or leaves, all others are gone within 10 s with the right exit code and a line
// that names it: also where the launcher does nothing about it.
#include <fcntl.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace trireme::comm {
namespace {

using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

std::vector<std::string> words_of(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) words.push_back(word);
  return words;
}

struct Outcome {
  int code = -1;  // of mpirun; -1: it had to be ended
  std::string output;
  double seconds_after_fault = 0;  // until mpirun and every rank were gone
  std::map<int, int> codes;        // rank → exit code, with `wrapped`
  int left_over = 0;               // ranks still alive when mpirun was gone
};

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A zombie that its parent has not reaped is gone.
bool alive(pid_t pid) {
  const std::string stat = read(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.size() > name_end + 2 && stat[name_end + 2] != 'Z';
}

// Each rank inside a shell that always succeeds and prints the rank's code, and with --enable-recovery: so mpirun does
// nothing about a death.
const std::string wrapper = R"("$0" "$@"; echo "rank $OMPI_COMM_WORLD_RANK left with $?")";

Outcome start(int ranks, const std::string& what, bool wrapped, std::vector<std::string> options = {},
              const std::string& watchdog_s = "30") {
  static int runs = 0;
  const auto folder = std::filesystem::path(testing::TempDir()) / fmt::format("comm_faults_{}_{}", getpid(), runs++);
  std::filesystem::create_directories(folder);
  const auto file = folder / "output";
  std::vector<std::string> command = words_of(TRIREME_MPIRUN, '|');
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"-n", std::to_string(ranks)});
  if (wrapped) command.insert(command.end(), {"--enable-recovery", "sh", "-c", wrapper});
  command.insert(command.end(), {TRIREME_FAULT_PROGRAM, what, watchdog_s});
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    const int out = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Outcome outcome;
  const auto begin = Clock::now();
  auto fault = begin;
  bool seen = false;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (!seen && read(file).find("fault now") != std::string::npos) seen = true, fault = Clock::now();
    if (Clock::now() - begin > std::chrono::seconds(70)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      status = -1;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  outcome.code = status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.output = read(file);
  const std::regex pid_line("pid ([0-9]+)"), code_line("rank ([0-9]+) left with ([0-9]+)");
  const auto& text = outcome.output;
  std::vector<pid_t> pids;
  for (std::sregex_iterator it(text.begin(), text.end(), pid_line), end; it != end; ++it)
    pids.push_back(std::stoi((*it)[1]));
  // mpirun does not wait for those it killed.
  while (std::ranges::any_of(pids, alive) && Clock::now() - fault < std::chrono::seconds(10))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  outcome.seconds_after_fault = std::chrono::duration<double>(Clock::now() - fault).count();
  for (const pid_t pid : pids)
    if (alive(pid)) ++outcome.left_over, kill(pid, SIGKILL);
  for (std::sregex_iterator it(text.begin(), text.end(), code_line), end; it != end; ++it)
    outcome.codes[std::stoi((*it)[1])] = std::stoi((*it)[2]);
  std::filesystem::remove_all(folder);
  return outcome;
}

std::map<int, int> codes(std::initializer_list<int> each) {
  std::map<int, int> result;
  for (const int code : each) result[static_cast<int>(result.size())] = code;
  return result;
}

constexpr int killed = 128 + SIGKILL;

TEST(Faults, NoFaultEndsWell) {
  const Outcome run = start(4, "none", true);
  EXPECT_EQ(run.codes, codes({0, 0, 0, 0})) << run.output;
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.output, Not(HasSubstr("error")));
}

TEST(Faults, AKilledRankIsLostThoughTheLauncherDoesNotMind) {
  const Outcome run = start(4, "kill", true);
  EXPECT_EQ(run.codes, codes({71, killed, 71, 71})) << run.output;
  EXPECT_LT(run.seconds_after_fault, 10.0);
  EXPECT_THAT(run.output, HasSubstr("lost rank 1 ("));
  EXPECT_THAT(run.output, HasSubstr("step 7"));
}

TEST(Faults, ALostRankIsFoundWhileOthersAreInALongStep) {
  const Outcome run = start(2, "kill_while_others_compute", true);
  EXPECT_EQ(run.codes, codes({71, killed})) << run.output;
  EXPECT_LT(run.seconds_after_fault, 10.0);
  EXPECT_THAT(run.output, HasSubstr("lost rank 1 ("));
}

TEST(Faults, WithRecoveryAllLeaveToo) {
  const Outcome run = start(4, "kill", false, {"--enable-recovery"});
  EXPECT_LT(run.seconds_after_fault, 10.0) << run.output;
  EXPECT_EQ(run.left_over, 0);  // (mpirun's own code says nothing then: it may be 0)
  EXPECT_THAT(run.output, HasSubstr("lost rank 1 ("));
}

TEST(Faults, UnderPlainMpirunNoOrphanStays) {
  const Outcome run = start(4, "kill", false);
  EXPECT_LT(run.seconds_after_fault, 10.0) << run.output;
  EXPECT_EQ(run.left_over, 0);
  EXPECT_NE(run.code, 0);
}

TEST(Faults, AFrozenRankIsLost) {
  const Outcome run = start(3, "freeze", false);
  EXPECT_EQ(run.code, 71) << run.output;
  EXPECT_LT(run.seconds_after_fault, 10.0);
  EXPECT_EQ(run.left_over, 0);
  EXPECT_THAT(run.output, HasSubstr("lost rank 1 ("));
}

TEST(Faults, AnAbortsCodeAndReasonReachAllRanks) {
  const Outcome run = start(4, "abort", true);
  EXPECT_EQ(run.codes, codes({72, 72, 72, 72})) << run.output;
  EXPECT_LT(run.seconds_after_fault, 3.0);
  EXPECT_THAT(run.output, HasSubstr("[rank 0 "));
  EXPECT_THAT(run.output, HasSubstr("leaves with code 72: loss is NaN in step 7"));
}

TEST(Faults, AHangingRankIsNamedWithStepAndPhase) {
  const Outcome run = start(4, "hang", true, {}, "3");
  EXPECT_EQ(run.codes, codes({71, 71, 71, 71})) << run.output;
  EXPECT_LT(run.seconds_after_fault, 10.0);
  EXPECT_TRUE(std::regex_search(run.output, std::regex("rank 1 \\([^)]*\\) hangs: no progress for [0-9.]+ s in step 7, "
                                                       "phase forward, in no collective")))
      << run.output;
}

TEST(Faults, ACollectiveThatOneRankSkipsIsNamed) {
  const Outcome run = start(2, "skip_collective", true, {}, "3");
  EXPECT_EQ(run.codes, codes({71, 71})) << run.output;
  EXPECT_LT(run.seconds_after_fault, 10.0);
  EXPECT_TRUE(std::regex_search(run.output, std::regex("hangs: no progress for [0-9.]+ s in step 7, phase [a-z]+, in "
                                                       "collective [a-z_]+ waiting for")))
      << run.output;
}

TEST(Faults, ALongStepIsNoHang) {
  const Outcome run = start(2, "long_step", true);
  EXPECT_EQ(run.codes, codes({0, 0})) << run.output;
}

TEST(Faults, WhoFinishesLateIsWaitedForAndWhoFinishesEarlyIsNotLost) {
  Outcome run = start(3, "late_finish", true);
  EXPECT_EQ(run.codes, codes({0, 0, 0})) << run.output;
  run = start(3, "late_exit", true);
  EXPECT_EQ(run.codes, codes({0, 0, 0})) << run.output;
}

TEST(Faults, AStoppedRunLeavesWith75) {
  const Outcome run = start(2, "stopped", true);
  EXPECT_EQ(run.codes, codes({75, 75})) << run.output;
}

}  // namespace
}  // namespace trireme::comm
