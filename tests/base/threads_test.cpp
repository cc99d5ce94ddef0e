// The partition of parallel_for, its exceptions and allocations, and the start with a settled environment.
#include "core/base/threads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "tests/base/folder.h"

namespace {
std::atomic<std::size_t> allocations{0};
}

#ifndef TRIREME_SANITIZED
// Counts what anyone allocates, libgomp included. (A sanitizer brings a malloc of its own.)
extern "C" void* __libc_malloc(std::size_t size) noexcept;
extern "C" void* malloc(std::size_t size) noexcept {
  ++allocations;
  return __libc_malloc(size);
}
#endif

namespace trireme {
namespace {

using Pieces = std::vector<std::pair<std::size_t, std::size_t>>;

Pieces pieces_of(std::size_t count, std::size_t grain, int threads) {
  set_compute_threads(threads);
  std::mutex mutex;
  Pieces pieces;
  parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
    const std::lock_guard lock(mutex);
    pieces.emplace_back(begin, end);
  });
  set_compute_threads(1);
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(ParallelFor, CoversEverythingOnceAtMultiplesOfGrain) {
  for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 64u, 1000u, 4097u}) {
    for (const std::size_t grain : {1u, 8u, 64u, 5000u}) {
      for (const int threads : {1, 2, 3, 5}) {
        const Pieces pieces = pieces_of(count, grain, threads);
        std::size_t next = 0;
        for (const auto& [begin, end] : pieces) {
          ASSERT_EQ(begin, next);
          ASSERT_LT(begin, end);
          ASSERT_EQ(begin % grain, 0u);
          next = end;
        }
        ASSERT_EQ(next, count);
        ASSERT_LE(pieces.size(), static_cast<std::size_t>(threads));
        ASSERT_EQ(pieces, pieces_of(count, grain, threads)) << "the partition changed";
      }
    }
  }
}

TEST(ParallelFor, SplitsEvenlyAndKeepsSmallOnesWhole) {
  EXPECT_EQ(pieces_of(4096, 64, 2), (Pieces{{0, 2048}, {2048, 4096}}));
  EXPECT_EQ(pieces_of(100, 10, 3), (Pieces{{0, 30}, {30, 60}, {60, 100}}));
  EXPECT_EQ(pieces_of(64, 64, 4), (Pieces{{0, 64}}));
  EXPECT_EQ(pieces_of(65, 64, 4).size(), 2u);
}

TEST(ParallelFor, RunsOnSeveralThreadsAndOnOneWhereNotApplied) {
  set_compute_threads(3);
  std::array<int, 3> numbers{};
  parallel_for(3, 1, [&](std::size_t begin, std::size_t) { numbers[begin] = omp_get_thread_num(); });
  EXPECT_EQ(numbers, (std::array{0, 1, 2}));
  // The number belongs to the thread that set it.
  std::size_t pieces = 0;
  std::thread([&] { parallel_for(3, 1, [&](std::size_t, std::size_t) { ++pieces; }); }).join();
  EXPECT_EQ(pieces, 1u);
  set_compute_threads(1);
}

TEST(ParallelFor, NestedLoopsRunInline) {
  set_compute_threads(2);
  std::atomic<int> inner{0};
  parallel_for(2, 1,
               [&](std::size_t, std::size_t) { parallel_for(10, 1, [&](std::size_t, std::size_t) { ++inner; }); });
  EXPECT_EQ(inner, 2);
  set_compute_threads(1);
}

TEST(ParallelFor, ExceptionsReachTheCaller) {
  set_compute_threads(2);
  const auto loop = [] {
    parallel_for(2, 1, [](std::size_t begin, std::size_t) {
      if (begin == 1) throw std::runtime_error("piece 1");
    });
  };
  EXPECT_THROW(loop(), std::runtime_error);
  set_compute_threads(1);
}

TEST(ParallelFor, AllocatesNothing) {
  set_compute_threads(2);
  [[maybe_unused]] const std::size_t first = allocations;
  std::vector<float> values(4096, 1.0f);
#ifndef TRIREME_SANITIZED
  ASSERT_GT(allocations, first) << "the counter counts nothing";
#endif
  const auto loop = [&] {
    parallel_for(values.size(), 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) values[i] += 1.0f;
    });
  };
  loop();  // starts the team
  const std::size_t before = allocations;
  for (int i = 0; i < 100; ++i) loop();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(values[0], 102.0f);
  EXPECT_EQ(values[4095], 102.0f);
  set_compute_threads(1);
}

TEST(UsableCores, IsTheAffinityMask) {
  cpu_set_t old, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(old), &old), 0);
  EXPECT_EQ(usable_cores(), CPU_COUNT(&old));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &old) && CPU_COUNT(&one) == 0) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(old), &old), 0);
}

TEST(NameThread, CutsLongNames) {
  std::string short_name, cut_name;
  std::thread([&] {
    std::array<char, 16> name{};
    name_thread("trm-comm");
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    short_name = name.data();
    name_thread("a-name-of-more-than-fifteen");
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    cut_name = name.data();
  }).join();
  EXPECT_EQ(short_name, "trm-comm");
  EXPECT_EQ(cut_name, "a-name-of-more-");
}

// Not a test: the child that the tests below start. Reports its starts, the environment of the last of them and the one
// that programs started by it would get.
TEST(SettledStart, DISABLED_Child) {
  const std::string report = std::getenv("TEST_REPORT");
  File starts(report + ".starts", O_WRONLY | O_CREAT | O_APPEND);
  starts.write(std::as_bytes(std::span("x", 1)));
  starts.close();
  const std::string program = testing::internal::GetArgvs().front();
  std::array<std::string, 3> texts = {program, "--gtest_filter=SettledStart.DISABLED_Child",
                                      "--gtest_also_run_disabled_tests"};
  std::array<char*, 4> argv = {texts[0].data(), texts[1].data(), texts[2].data(), nullptr};
  const auto values = [] {
    std::string text;
    for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_DYNAMIC", "LD_LIBRARY_PATH"}) {
      const char* const value = std::getenv(name);
      text.append(text.empty() ? "" : " ").append(value == nullptr ? "-" : value);
    }
    return text;
  };
  const std::string before = values();
  settle_thread_environment(argv.data());
  const bool marked = std::getenv("TRIREME_THREADS_SETTLED") != nullptr;
  replace_file(report, before + " | " + values() + (marked ? " marked" : ""));
}

std::pair<std::string, std::size_t> settled_start(const char* wait_policy, const char* dynamic,
                                                  const char* local_size = nullptr) {
  const Folder folder;
  const std::string report = folder / "report";
  const pid_t child = ::fork();
  if (child == 0) {
    ::unsetenv("OMP_WAIT_POLICY");
    ::unsetenv("OMP_DYNAMIC");
    ::unsetenv("GOMP_SPINCOUNT");
    if (local_size != nullptr) {
      ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
      ::setenv("OMPI_COMM_WORLD_SIZE", "1000000", 1);
      ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", local_size, 1);
    }
    if (wait_policy != nullptr) ::setenv("OMP_WAIT_POLICY", wait_policy, 1);
    if (dynamic != nullptr) ::setenv("OMP_DYNAMIC", dynamic, 1);
    ::setenv("TEST_REPORT", report.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", "/kept", 1);
    const int quiet = ::open("/dev/null", O_WRONLY);
    ::dup2(quiet, STDOUT_FILENO);
    ::execl("/proc/self/exe", testing::internal::GetArgvs().front().c_str(),
            "--gtest_filter=SettledStart.DISABLED_Child", "--gtest_also_run_disabled_tests", nullptr);
    ::_exit(127);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return {read_file(report, 1000), read_file(report + ".starts", 100).size()};
}

// One that may keep two cores busy spins, if there are two.
TEST(SettledStart, StartsOnceMoreWithAPolicy) {
  const auto [seen, starts] = settled_start(nullptr, nullptr, "1");
  EXPECT_EQ(seen, usable_cores() >= 2 ? "- 20000 false /kept | - - - /kept" : "passive - false /kept | - - - /kept");
  EXPECT_EQ(starts, 2u);
}

TEST(SettledStart, SleepsWhereRanksShareCores) {
  const auto [seen, starts] = settled_start(nullptr, nullptr, "1000000");
  EXPECT_EQ(seen, "passive - false /kept | - - - /kept");
  EXPECT_EQ(starts, 2u);
}

TEST(SettledStart, ReturnsWhereAllIsSet) {
  const auto [seen, starts] = settled_start("passive", "false");
  EXPECT_EQ(seen, "passive - false /kept | passive - false /kept");
  EXPECT_EQ(starts, 1u);
}

TEST(SettledStart, LeavesAUsersPolicy) {
  const auto [seen, starts] = settled_start("active", nullptr);
  EXPECT_EQ(seen, "active - false /kept | active - - /kept");
  EXPECT_EQ(starts, 2u);
}

}  // namespace
}  // namespace trireme
