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
#include <string>
#include <system_error>

#include "core/base/log.h"

namespace trireme {
namespace {

constexpr const char* settled_mark = "TRIREME_THREADS_SETTLED";

// Threads other than the compute thread keep 1, so that no feed or communication thread raises a team.
thread_local int compute_threads = 1;

bool set_if_absent(const char* name, const char* value) {
  if (std::getenv(name) != nullptr) return false;
  ::setenv(name, value, 1);
  return true;
}

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
  if (std::getenv(settled_mark) != nullptr) {  // never twice, and programs we start decide for themselves
    ::unsetenv(settled_mark);
    return;
  }
  // A user's own wait policy stands.
  const bool policy = std::getenv("GOMP_SPINCOUNT") == nullptr && set_if_absent("OMP_WAIT_POLICY", "passive");
  const bool dynamic = set_if_absent("OMP_DYNAMIC", "false");
  if (!policy && !dynamic) return;
  ::setenv(settled_mark, "1", 1);
  ::execv("/proc/self/exe", argv);
  const int error = errno;
  ::unsetenv(settled_mark);
  log::warn(
      "cannot start again with OMP_WAIT_POLICY=passive ({}); set it in the environment, or ranks that share "
      "cores slow each other down",
      std::generic_category().message(error));
}

void apply(const ThreadBudget& budget) {
  compute_threads = std::max(1, budget.compute);
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
