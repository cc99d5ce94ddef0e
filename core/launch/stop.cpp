// One thread waits for signals and sets a flag; everything else happens where the step loop asks.
#include "core/launch/stop.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "core/base/error.h"
#include "core/base/threads.h"

namespace trireme::launch {
namespace {

std::atomic<int> signal_met{0};
std::atomic<double> stop_at{std::numeric_limits<double>::infinity()};  // seconds since the epoch

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

// Ignored ones are left out: sigwait would take them all the same.
sigset_t requests() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

void wait_for_requests(const sigset_t& set) {
  name_thread("trm-signals");
  bool interrupted = false;
  while (true) {
    int signal = 0;
    if (::sigwait(&set, &signal) != 0) continue;
    if (signal == SIGINT && interrupted) {  // the second one has its default action
      std::signal(SIGINT, SIG_DFL);
      ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
      ::raise(SIGINT);
    }
    interrupted = interrupted || signal == SIGINT;
    signal_met.store(signal, std::memory_order_relaxed);
  }
}

}  // namespace

void catch_stop_requests() {
  stop_at.store(number_from("TRIREME_DEADLINE", std::numeric_limits<double>::infinity()) -
                number_from("TRIREME_STOP_BEFORE_S", 60));
  // No handler: oneDNN's generated products (before 3.11.2, its issue 4845) point the stack pointer into a buffer on
  // the heap, and the frame of a handler would overwrite what lies before it.
  hold_stop_requests();
  static const bool waiting = [] {
    std::thread([set = requests()] { wait_for_requests(set); }).detach();
    return true;
  }();
  (void)waiting;
}

void hold_stop_requests() {
  const sigset_t set = requests();
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) fail_errno(error, "pthread_sigmask");
}

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
         action.sa_handler == SIG_IGN;
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
