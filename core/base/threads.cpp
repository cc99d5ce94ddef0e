// Thread numbers, thread names, and the loop over a fixed partition on OpenMP.
#include "core/base/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include "core/base/log.h"
#include "core/base/rank.h"

namespace trireme {
namespace {

constexpr const char* settled_mark = "TRIREME_THREADS_SETTLED";

// Threads other than the compute thread keep 1, so that no feed or communication thread raises a team.
thread_local int compute_threads = 1;

// The first exception of a team; it may not leave an OpenMP region by itself.
class FirstException {
 public:
  void keep() noexcept {
    if (!taken_.test_and_set()) exception_ = std::current_exception();
  }
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::exception_ptr exception_;
};

}  // namespace

void settle_thread_environment(char** argv) {
  if (const char* const set_by_us = std::getenv(settled_mark)) {
    // libgomp has read them. Programs that we start decide for themselves.
    std::istringstream names(set_by_us);
    for (std::string name; names >> name;) ::unsetenv(name.c_str());
    ::unsetenv(settled_mark);
    return;
  }
  std::string mark;
  const auto set = [&](const char* name, const char* value) {
    ::setenv(name, value, 1);
    mark.append(mark.empty() ? "" : " ").append(name);
  };
  // A user's own wait policy stands.
  if (std::getenv("GOMP_SPINCOUNT") == nullptr && std::getenv("OMP_WAIT_POLICY") == nullptr) {
    const bool roomy = usable_cores() / launched_as().local_size >= 2;
    set(roomy ? "GOMP_SPINCOUNT" : "OMP_WAIT_POLICY", roomy ? "20000" : "passive");
  }
  if (std::getenv("OMP_DYNAMIC") == nullptr) set("OMP_DYNAMIC", "false");
  if (mark.empty()) return;
  ::setenv(settled_mark, mark.c_str(), 1);
  // By its own name, which ps and valgrind go by; a program that was removed meanwhile has only the link.
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (!unknown) ::execv(self.c_str(), argv);
  ::execv("/proc/self/exe", argv);
  const int error = errno;
  ::unsetenv(settled_mark);
  log::warn(
      "cannot start again with a wait policy for OpenMP ({}); set OMP_WAIT_POLICY=passive in the environment, or ranks "
      "that share cores slow each other down",
      std::generic_category().message(error));
}

void set_compute_threads(int threads) {
  compute_threads = std::max(1, threads);
  omp_set_dynamic(0);
  omp_set_num_threads(compute_threads);
}

int usable_cores() {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {  // the kernel refuses a mask smaller than its own
    cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cpus));
    if (set == nullptr) return 1;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    const bool known = ::sched_getaffinity(0, size, set) == 0;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, count);
    if (errno != EINVAL) return 1;
  }
  return 1;
}

void name_thread(const char* name) {
  std::array<char, 16> short_name{};
  std::strncpy(short_name.data(), name, short_name.size() - 1);
  ::pthread_setname_np(::pthread_self(), short_name.data());
}

void stand_back() noexcept {
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);  // refused: it stays as it was
}

namespace detail {

void parallel_for(std::size_t count, std::size_t grain, RangeBody body, const void* state) {
  if (count == 0) return;
  grain = std::max<std::size_t>(1, grain);
  const auto pieces = static_cast<std::size_t>(compute_threads);
  if (count <= grain || pieces == 1 || omp_in_parallel() != 0) {
    body(state, 0, count);
    return;
  }
  const std::size_t blocks = count / grain + (count % grain != 0 ? 1 : 0);
  const auto begin_of = [&](std::size_t piece) {
    // piece · blocks ÷ pieces without overflow
    const std::size_t block = blocks / pieces * piece + blocks % pieces * piece / pieces;
    return block >= blocks ? count : block * grain;
  };
  FirstException thrown;
  // Always the whole team: libgomp ends threads that a smaller team leaves out and starts them anew later.
#pragma omp parallel num_threads(compute_threads)
  {
    const auto team = static_cast<std::size_t>(omp_get_num_threads());
    for (auto piece = static_cast<std::size_t>(omp_get_thread_num()); piece < pieces; piece += team) {
      const std::size_t begin = begin_of(piece), end = begin_of(piece + 1);
      if (begin == end) continue;
      try {
        body(state, begin, end);
      } catch (...) {
        thrown.keep();
      }
    }
  }
  thrown.rethrow();
}

}  // namespace detail
}  // namespace trireme
