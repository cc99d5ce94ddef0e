// A small run of steps in which one rank dies, freezes, hangs or leaves: what tests/comm/fault_test.cpp starts.
//
//   comm_fault_program CASE [watchdog_s]
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "core/comm/bootstrap.h"
#include "core/comm/leave.h"

namespace trireme::comm {

namespace {

using namespace std::chrono_literals;

constexpr int culprit = 1;
constexpr std::uint64_t bad_step = 7;

void print(std::string_view line) {
  const std::string whole = fmt::format("{}\n", line);
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, whole.data(), whole.size());
}

// Returns the exit code.
int act(Group& group, std::string_view what) {
  const bool chosen = group.rank() == culprit;
  if (what == "kill" && chosen) {
    print("fault now");
    raise(SIGKILL);
  }
  if (what == "kill_while_others_compute") {
    if (chosen) {
      print("fault now");
      raise(SIGKILL);
    }
    std::this_thread::sleep_for(30s);
  }
  if (what == "freeze" && chosen) {
    print("fault now");
    raise(SIGSTOP);
  }
  if (what == "abort" && chosen) {
    print("fault now");
    group.abort(72, "loss is NaN in step 7");
    _exit(72);
  }
  if (what == "hang" && chosen) {
    print("fault now");
    while (true) std::this_thread::sleep_for(1s);
  }
  if (what == "skip_collective" && chosen) {
    print("fault now");
    group.barrier_now();
  }
  if (what == "long_step" && chosen) std::this_thread::sleep_for(8s);
  return 0;
}

int run(std::string_view what, double watchdog_s) {
  alarm(60);
  Options options;
  options.watchdog_s = watchdog_s;
  Group group = connect(options);
  print(fmt::format("pid {}", getpid()));
  std::vector<float> gradients(300'000);
  std::vector<double> squares(tiles_of(gradients.size()));
  Words words;
  for (std::uint64_t step = 0; step < 12; ++step) {
    group.progress(step, "forward");
    std::fill(gradients.begin(), gradients.end(), 1.0f);
    std::this_thread::sleep_for(20ms);
    if (step == bad_step) act(group, what);
    group.progress(step, "reduce");
    if (std::has_single_bit(static_cast<unsigned>(group.size())))
      group.tree_reduce(gradients, squares).synchronize();
    else
      group.all_reduce(std::span<float>(gradients)).synchronize();
    if (gradients[299'999] != static_cast<float>(group.size())) return 70;
    group.agree(words).synchronize();
  }
  group.progress(12, "finish");
  if (what == "late_finish" && group.rank() == culprit) std::this_thread::sleep_for(7s);
  if (!group.finish()) std::_Exit(what == "stopped" ? 75 : 0);
  if (what == "late_exit" && group.rank() == culprit) std::this_thread::sleep_for(7s);
  return what == "stopped" ? 75 : 0;
}

}  // namespace

}  // namespace trireme::comm

int main(int argc, char** argv) {
  return trireme::comm::run(argc > 1 ? argv[1] : "", argc > 2 ? std::atof(argv[2]) : 30.0);
}
