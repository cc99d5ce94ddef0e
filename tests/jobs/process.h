// Starts a program, hears it line by line, and finds every process that came of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace trireme::tests {

struct ProcessOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // added
  std::string folder;                                            // working directory; empty: this one's
  double timeout_s = 120;
  // stdout and stderr, as they come; may signal `pid`.
  std::function<void(const std::string& line, pid_t pid)> on_line;
};

struct Finished {
  int exit_code = -1;      // 128 + signal where it was killed
  bool timed_out = false;  // then all of it was killed
  std::string output;      // stdout and stderr together
  double seconds = 0;
  double gone_after_s = 0;         // from the start until the last process of the run was gone
  std::vector<pid_t> left_behind;  // still there 20 s after the end (and then killed)
};
[[nodiscard]] Finished run_process(const ProcessOptions& options);

// Processes of the run whose environment has NAME=VALUE; children of any depth keep it.
[[nodiscard]] std::vector<pid_t> processes_with(const std::string& name, const std::string& value);

}  // namespace trireme::tests
