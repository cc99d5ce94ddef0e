// TRIREME_FAULT, parsed once; counts how often each of its events was reached.
#include "core/base/fault.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/rank.h"

namespace trireme::fault {
namespace {

enum class Action { kill, freeze, raise, delay, announce };

struct Fault {
  std::optional<int> rank;
  std::string event;
  std::uint64_t count = 1, reached = 0;
  Action action = Action::kill;
  std::uint64_t ms = 1000;
};

std::mutex mutex;  // guards the vector below; only taken while faults are armed
std::vector<Fault>& faults() {
  static auto* const shared = new std::vector<Fault>;  // never destroyed: threads may come by while the program exits
  return *shared;
}

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::uint64_t to_number(const std::string& key, const std::string& text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    fail(ExitCode::usage, "TRIREME_FAULT: {} = '{}' is not a number", key, text);
  }
  return value;
}

Action to_action(const std::string& text) {
  if (text == "kill") return Action::kill;
  if (text == "freeze") return Action::freeze;
  if (text == "throw") return Action::raise;
  if (text == "delay") return Action::delay;
  if (text == "announce") return Action::announce;
  fail(ExitCode::usage, "TRIREME_FAULT: action '{}' is none of kill, freeze, throw, delay, announce", text);
}

Fault parse(const std::string& text) {
  Fault fault;
  for (const std::string& item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "rank") {
      if (value != "all") fault.rank = static_cast<int>(to_number(key, value));
    } else if (key == "event") {
      fault.event = value;
    } else if (key == "count") {
      fault.count = to_number(key, value);
    } else if (key == "ms") {
      fault.ms = to_number(key, value);
    } else if (key == "action") {
      fault.action = to_action(value);
    } else {
      fail(ExitCode::usage, "TRIREME_FAULT: '{}' is none of rank, event, count, action, ms", key);
    }
  }
  if (fault.event.empty()) fail(ExitCode::usage, "TRIREME_FAULT: '{}' names no event", text);
  return fault;
}

// On stderr before anything else, so that a test knows when.
void announce(const Fault& fault) {
  const std::string line =
      fmt::format("fault: rank {} reached {} {}\n", launched_as().rank, fault.event, fault.reached);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

void act(const Fault& fault) {
  announce(fault);
  switch (fault.action) {
    case Action::kill: ::kill(::getpid(), SIGKILL); break;
    case Action::freeze: ::kill(::getpid(), SIGSTOP); break;
    case Action::raise: fail(ExitCode::internal, "TRIREME_FAULT: error at {} {}", fault.event, fault.reached);
    case Action::delay: std::this_thread::sleep_for(std::chrono::milliseconds(fault.ms)); break;
    case Action::announce: break;
  }
}

// A mistake in the variable is told by arm_from_environment, which main calls; here it only arms nothing.
const bool read_at_load = [] {
  try {
    arm_from_environment();
  } catch (const Error&) {
    return false;
  }
  return true;
}();

}  // namespace

namespace detail {

std::atomic<bool> armed{false};

void reach(std::string_view event) {
  std::vector<Fault> due;
  {
    const std::lock_guard lock(mutex);
    for (Fault& fault : faults()) {
      if (fault.event != event) continue;
      ++fault.reached;
      const bool again = fault.action == Action::delay && fault.reached > fault.count;
      if (fault.reached == fault.count || again) due.push_back(fault);
    }
  }
  for (const Fault& fault : due) act(fault);
}

}  // namespace detail

void arm_from_environment() {
  const char* const text = std::getenv("TRIREME_FAULT");
  std::vector<Fault> mine;
  const int rank = launched_as().rank;
  for (const std::string& item : split(text == nullptr ? "" : text, ';')) {
    Fault fault = parse(item);
    if (!fault.rank || *fault.rank == rank) mine.push_back(std::move(fault));
  }
  const std::lock_guard lock(mutex);
  faults() = std::move(mine);
  detail::armed.store(!faults().empty(), std::memory_order_relaxed);
}

}  // namespace trireme::fault
