// Stop requests: each signal, the deadline, and that a mistake in its variable is told.
#include "core/launch/stop.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <thread>

#include "core/base/error.h"

namespace trireme::launch {
namespace {

// Signals and the flag are the process's own, so each case has a process. Returns its exit code.
int in_a_process(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A thread of its own hears the signal, so a little later; the limit is for a busy machine.
int reason_is(const std::string& expected) {
  for (int i = 0; i < 2000 && stop_reason() != expected; ++i) ::usleep(5000);
  if (stop_reason() == expected && stop_requested() == !expected.empty()) return 0;
  std::fprintf(stderr, "reason '%s' for '%s'\n", stop_reason().c_str(), expected.c_str());
  return 1;
}

TEST(Stop, EachSignalIsARequest) {
  const std::pair<int, const char*> cases[] = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGUSR1, "SIGUSR1"}};
  for (const auto& [signal, name] : cases) {
    EXPECT_EQ(in_a_process([&, number = signal, word = name] {
                catch_stop_requests();
                if (reason_is("") != 0) return 1;
                ::kill(::getpid(), number);
                return reason_is(word);
              }),
              0);
  }
}

TEST(Stop, SecondInterruptEndsTheProcess) {
  EXPECT_EQ(in_a_process([] {
              catch_stop_requests();
              ::kill(::getpid(), SIGINT);
              if (reason_is("SIGINT") != 0) return 1;
              ::kill(::getpid(), SIGINT);
              ::sleep(10);
              return 0;
            }),
            128 + SIGINT);
}

// nohup and scripts ignore some; a thread that waits for them would take them all the same.
TEST(Stop, IgnoredSignalsAreNoRequest) {
  EXPECT_EQ(in_a_process([] {
              std::signal(SIGINT, SIG_IGN);
              catch_stop_requests();
              ::kill(::getpid(), SIGINT);
              ::usleep(200000);
              if (reason_is("") != 0) return 1;
              ::kill(::getpid(), SIGTERM);
              return reason_is("SIGTERM");
            }),
            0);
}

// From the first line of main to catch_stop_requests(), with an exec between.
TEST(Stop, HeldRequestsAreHeardLater) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    EXPECT_EQ(in_a_process([signal] {
                hold_stop_requests();
                ::kill(::getpid(), signal);
                ::execl("/proc/self/exe", "held", "fake", "reason", nullptr);
                return 2;
              }),
              signal);
  }
}

// A signal's frame on the stack of a thread that computes would destroy the heap: oneDNN's kernels use the stack
// pointer.
TEST(Stop, ThreadsThatWorkTakeNoSignal) {
  EXPECT_EQ(in_a_process([] {
              catch_stop_requests();
              const auto blocked = [] {
                sigset_t set;
                ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
                return sigismember(&set, SIGTERM) == 1 && sigismember(&set, SIGUSR1) == 1 &&
                       sigismember(&set, SIGINT) == 1;
              };
              bool in_thread = false;
              std::thread([&] { in_thread = blocked(); }).join();
              return blocked() && in_thread ? 0 : 1;
            }),
            0);
}

int with_deadline(long seconds_from_now, const char* margin) {
  return in_a_process([&] {
    ::setenv("TRIREME_DEADLINE", std::to_string(std::time(nullptr) + seconds_from_now).c_str(), 1);
    if (margin != nullptr) ::setenv("TRIREME_STOP_BEFORE_S", margin, 1);
    catch_stop_requests();
    return stop_requested() ? (stop_reason() == "deadline" ? 1 : 2) : 0;
  });
}

TEST(Stop, DeadlineLessTheMargin) {
  EXPECT_EQ(with_deadline(50, nullptr), 1);  // 60 s before it
  EXPECT_EQ(with_deadline(300, nullptr), 0);
  EXPECT_EQ(with_deadline(300, "400"), 1);
  EXPECT_EQ(with_deadline(50, "10"), 0);
}

TEST(Stop, BadDeadlineIsRefused) {
  EXPECT_EQ(in_a_process([] {
              ::setenv("TRIREME_DEADLINE", "tomorrow", 1);
              try {
                catch_stop_requests();
              } catch (const Error& error) {
                return error.code() == ExitCode::usage ? 0 : 1;
              }
              return 2;
            }),
            0);
}

}  // namespace
}  // namespace trireme::launch
