// The handlers set a flag; everything else happens where the step loop asks.
#include "core/launch/stop.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/base/error.h"

namespace trireme::launch {
namespace {

std::atomic<int> signal_met{0};
static_assert(std::atomic<int>::is_always_lock_free);                  // so a handler may write it
std::atomic<double> stop_at{std::numeric_limits<double>::infinity()};  // seconds since the epoch

void note(int signal) { signal_met.store(signal, std::memory_order_relaxed); }

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double number_from(const char* name, double fallback) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return fallback;
  double value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end) fail(ExitCode::usage, "{} = '{}' is not a number of seconds", name, text);
  return value;
}

void handle(int signal, int flags) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | flags;
  sigemptyset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) != 0) fail_errno(errno, "sigaction");
}

}  // namespace

void catch_stop_requests() {
  stop_at.store(number_from("TRIREME_DEADLINE", std::numeric_limits<double>::infinity()) -
                number_from("TRIREME_STOP_BEFORE_S", 60));
  handle(SIGTERM, 0);
  handle(SIGUSR1, 0);
  handle(SIGINT, static_cast<int>(SA_RESETHAND));  // the second one has its default action
}

bool stop_requested() noexcept {
  return signal_met.load(std::memory_order_relaxed) != 0 || seconds_since_epoch() >= stop_at.load();
}

std::string stop_reason() {
  switch (signal_met.load(std::memory_order_relaxed)) {
    case SIGTERM: return "SIGTERM";
    case SIGINT: return "SIGINT";
    case SIGUSR1: return "SIGUSR1";
    default: return seconds_since_epoch() >= stop_at.load() ? "deadline" : "";
  }
}

}  // namespace trireme::launch
