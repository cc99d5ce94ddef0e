// Preloaded, it sets the clock of the process an hour back: from its start, or TRIREME_CLOCK_BACK_AFTER seconds later.
#include <dlfcn.h>
#include <sys/time.h>

#include <cstdlib>
#include <ctime>

namespace {

using ClockGettime = int (*)(clockid_t, timespec*);

int real(clockid_t clock, timespec* time) {
  static const auto call = reinterpret_cast<ClockGettime>(::dlsym(RTLD_NEXT, "clock_gettime"));
  return call(clock, time);
}

double monotonic() {
  timespec now{};
  real(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const double back_at = [] {
  const char* const after = std::getenv("TRIREME_CLOCK_BACK_AFTER");
  return monotonic() + (after != nullptr ? std::atof(after) : 0);
}();

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = real(clock, time);
  if ((clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && monotonic() >= back_at) time->tv_sec -= 3600;
  return result;
}

std::time_t time(std::time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* out, void* /*zone*/) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

}  // extern "C"
