// The lease: who gets it, who is refused, who lost it. Holders are processes of their own, made by fork.
#include "io/checkpoint/lease.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "io/checkpoint/holder.h"
#include "tests/checkpoint/small_run.h"

namespace trireme::io {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using small_run::Folder;

constexpr LeaseTimes short_times{100ms, 600ms};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A process that holds the lease until it is told to go (SIGTERM gives it back) or killed.
class HolderProcess {
 public:
  explicit HolderProcess(const fs::path& folder) {
    pid_ = ::fork();
    if (pid_ != 0) {
      while (!read_holder(folder / "lease.json")) std::this_thread::sleep_for(1ms);
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
    sigset_t terminate;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    sigprocmask(SIG_BLOCK, &terminate, nullptr);
    try {
      const Lease lease(folder, "of-child", short_times);
      int signal = 0;
      sigwait(&terminate, &signal);
    } catch (const Error&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  ~HolderProcess() {
    if (pid_ > 0) end(SIGKILL);
  }
  HolderProcess(const HolderProcess&) = delete;
  HolderProcess& operator=(const HolderProcess&) = delete;
  void signal(int number) const { ::kill(pid_, number); }
  // Stops it, surely not inside one of its moments under the lock.
  void stop_outside_the_lock(const fs::path& folder) const {
    const File lock(folder / "lease.lock", O_RDWR | O_CREAT);
    ASSERT_EQ(::flock(lock.fd(), LOCK_EX), 0);
    signal(SIGSTOP);
    ASSERT_EQ(::waitpid(pid_, nullptr, WUNTRACED), pid_);  // until it has stopped
  }
  void end(int number, bool reap = true) {
    ::kill(pid_, number);
    if (!reap) return;
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// Changes what stands in lease.json, as another host would have written it.
void rewrite(const fs::path& folder, const std::function<void(Holder&)>& change) {
  auto holder = read_holder(folder / "lease.json");
  ASSERT_TRUE(holder.has_value());
  change(*holder);
  write_holder(folder / "lease.json", *holder);
}

TEST(Lease, IsGivenBack) {
  const Folder folder("lease", testing::TempDir());
  for (int i = 0; i < 2; ++i) {
    const auto begin = Clock::now();
    const Lease lease(folder.path(), "a" + std::to_string(i), short_times);
    EXPECT_NO_THROW(lease.check());
    EXPECT_LT(seconds_since(begin), 0.3);  // at once: below the time of expiry
    const auto holder = read_holder(folder.path() / "lease.json");
    ASSERT_TRUE(holder.has_value());
    EXPECT_EQ(holder->pid, ::getpid());
    EXPECT_EQ(holder->attempt, "a" + std::to_string(i));
  }
  EXPECT_FALSE(fs::exists(folder.path() / "lease.json"));
}

TEST(Lease, IsRenewed) {
  const Folder folder("lease", testing::TempDir());
  const Lease lease(folder.path(), "a", short_times);
  std::this_thread::sleep_for(450ms);
  EXPECT_GE(read_holder(folder.path() / "lease.json")->renewals, 2u);
  EXPECT_NO_THROW(lease.check());
}

TEST(Lease, ALiveHolderIsNamedAndNotDisturbed) {
  const Folder folder("lease", testing::TempDir());
  HolderProcess child(folder.path());
  try {
    const Lease lease(folder.path(), "mine", short_times);
    FAIL() << "taken from a live holder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const Holder us = this_process("x");
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("pid " + std::to_string(child.pid())),
                                             testing::HasSubstr(us.host), testing::HasSubstr("of-child")));
  }
  EXPECT_EQ(read_holder(folder.path() / "lease.json")->attempt, "of-child");
  child.end(SIGTERM);
  EXPECT_NO_THROW(Lease(folder.path(), "mine", short_times));
}

TEST(Lease, ADeadProcessIsFollowedAtOnce) {
  for (const bool reaped : {true, false}) {  // a zombie is dead too
    const Folder folder("lease", testing::TempDir());
    HolderProcess child(folder.path());
    child.end(SIGKILL, reaped);
    std::this_thread::sleep_for(20ms);
    const auto begin = Clock::now();
    const Lease lease(folder.path(), "mine", LeaseTimes{});  // the real times: 30 s would be seen
    EXPECT_LT(seconds_since(begin), 1.0);
    EXPECT_NO_THROW(lease.check());
  }
}

TEST(Lease, APidThatWasUsedAgainIsDead) {
  const Folder folder("lease", testing::TempDir());
  HolderProcess child(folder.path());
  child.stop_outside_the_lock(folder.path());
  rewrite(folder.path(), [](Holder& holder) { holder.started += 1; });
  const auto begin = Clock::now();
  const Lease lease(folder.path(), "mine", LeaseTimes{});
  EXPECT_LT(seconds_since(begin), 1.0);
}

TEST(Lease, AnotherHostsLeaseIsWatchedUntilItExpires) {
  const Folder folder("lease", testing::TempDir());
  Holder other = this_process("elsewhere");
  other.host = "node17";
  other.pid = 1;  // alive here, but that says nothing about node17
  write_holder(folder.path() / "lease.json", other);
  const auto begin = Clock::now();
  const Lease lease(folder.path(), "mine", short_times);
  EXPECT_GE(seconds_since(begin), 0.6);
  EXPECT_EQ(read_holder(folder.path() / "lease.json")->attempt, "mine");
}

TEST(Lease, TheSameNameOfAnotherBootIsAnotherHost) {
  const Folder folder("lease", testing::TempDir());
  Holder other = this_process("elsewhere");
  other.boot = "another boot";
  other.pid = 999999999;  // dead here, which says nothing
  write_holder(folder.path() / "lease.json", other);
  const auto begin = Clock::now();
  const Lease lease(folder.path(), "mine", short_times);
  EXPECT_GE(seconds_since(begin), 0.6);
}

TEST(Lease, ARenewalFromAnotherHostIsRespected) {
  const Folder folder("lease", testing::TempDir());
  Holder other = this_process("elsewhere");
  other.host = "node17";
  write_holder(folder.path() / "lease.json", other);
  std::thread renewing([&] {
    std::this_thread::sleep_for(300ms);
    other.renewals = 1;
    write_holder(folder.path() / "lease.json", other);
  });
  try {
    const Lease lease(folder.path(), "mine", short_times);
    ADD_FAILURE() << "taken from a live holder";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("host node17"));
  }
  renewing.join();
}

TEST(Lease, TheSameSlurmJobRestartedFollowsAtOnce) {
  const Folder folder("lease", testing::TempDir());
  Holder other = this_process("elsewhere");
  other.host = "node17";
  other.slurm_job = "4711";
  other.slurm_restarts = 0;
  write_holder(folder.path() / "lease.json", other);
  ::setenv("SLURM_JOB_ID", "4711", 1);
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  const auto begin = Clock::now();
  std::optional<Lease> lease(std::in_place, folder.path(), "mine", LeaseTimes{});
  EXPECT_LT(seconds_since(begin), 1.0);
  lease.reset();
  write_holder(folder.path() / "lease.json", other);
  ::setenv("SLURM_JOB_ID", "4712", 1);  // another job waits
  EXPECT_TRUE(read_holder(folder.path() / "lease.json").has_value());
  const auto again = Clock::now();
  lease.emplace(folder.path(), "mine", short_times);
  EXPECT_GE(seconds_since(again), 0.6);
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST(Lease, AStoppedHolderLosesItAndIsTold) {
  const Folder folder("lease", testing::TempDir());
  const Lease lease(folder.path(), "slow", short_times);
  Holder other = this_process("quick");
  other.host = "node17";
  write_holder(folder.path() / "lease.json", other);  // taken while we slept
  std::this_thread::sleep_for(300ms);
  try {
    lease.check();
    FAIL() << "still ours";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("node17"), testing::HasSubstr("quick")));
  }
}

// A holder that sleeps (SIGSTOP) loses it after the expiry; woken, it leaves the lease of its follower alone.
TEST(Lease, AFollowerOfASleeperKeepsItWhenTheSleeperWakes) {
  const Folder folder("lease", testing::TempDir());
  HolderProcess child(folder.path());
  child.stop_outside_the_lock(folder.path());
  const Lease lease(folder.path(), "mine", short_times);
  child.signal(SIGCONT);
  std::this_thread::sleep_for(300ms);
  child.end(SIGTERM);
  EXPECT_NO_THROW(lease.check());
  EXPECT_EQ(read_holder(folder.path() / "lease.json")->attempt, "mine");
}

TEST(Lease, OfTwoTakersOneWins) {
  for (int round = 0; round < 5; ++round) {
    const Folder folder("lease", testing::TempDir());
    Holder dead = this_process("dead");
    dead.host = "node17";
    write_holder(folder.path() / "lease.json", dead);  // both watch it expire, then both want it
    std::optional<Lease> leases[3];
    int refused[3] = {};
    std::vector<std::thread> takers;
    for (std::size_t i = 0; i < 3; ++i) {
      takers.emplace_back([&, i] {
        try {
          leases[i].emplace(folder.path(), "t" + std::to_string(i), short_times);
        } catch (const Error&) {
          refused[i] = 1;
        }
      });
    }
    for (std::thread& taker : takers) taker.join();
    EXPECT_EQ(refused[0] + refused[1] + refused[2], 2);
  }
}

TEST(Lease, AStuckLockIsAnErrorAndNoHang) {
  const Folder folder("lease", testing::TempDir());
  const File lock(folder.path() / "lease.lock", O_RDWR | O_CREAT);
  ASSERT_EQ(::flock(lock.fd(), LOCK_EX), 0);
  try {
    const Lease lease(folder.path(), "mine", short_times);
    FAIL() << "taken without the lock";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("lease.lock"));
  }
}

TEST(Lease, ATornFileDoesNotBlock) {
  const Folder folder("lease", testing::TempDir());
  std::FILE* const file = std::fopen((folder.path() / "lease.json").c_str(), "w");
  std::fputs("{\"host\": \"no", file);
  std::fclose(file);
  EXPECT_NO_THROW(Lease(folder.path(), "mine", short_times));
}

TEST(Token, IsReadByAllRanks) {
  const Folder folder("token", testing::TempDir());
  write_token(folder.path(), "a1");
  EXPECT_NO_THROW(check_token(folder.path(), "a1", 3, 50ms));
  write_token(folder.path(), "a2");
  EXPECT_NO_THROW(check_token(folder.path(), "a2", 3, 50ms));
}

TEST(Token, MayComeALittleLater) {
  const Folder folder("token", testing::TempDir());
  std::thread writer([&] {
    std::this_thread::sleep_for(150ms);
    write_token(folder.path(), "a1");
  });
  EXPECT_NO_THROW(check_token(folder.path(), "a1", 1));
  writer.join();
}

TEST(Token, AFolderThatIsNotSharedIsNamed) {
  const Folder folder("token", testing::TempDir());
  write_token(folder.path(), "of-another-start");
  try {
    check_token(folder.path(), "a1", 3, 50ms);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("rank 3"), testing::HasSubstr(folder.path().string()),
                                             testing::HasSubstr("of-another-start")));
  }
}

}  // namespace
}  // namespace trireme::io
