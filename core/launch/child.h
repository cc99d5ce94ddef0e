// The launcher's child (mpirun, srun, or the one rank itself) in a process group of its own, and all that descends from
// it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace trireme::launch {

class Child {
 public:
  // Starts `command` (searched on PATH) with `environment` added. Standard input is empty; what it writes comes to
  // wait(), which passes stdout on as it is, so that mpirun lives on where our reader leaves. If the launcher dies, the
  // child gets USR1: ranks save and stop. Throws Error(usage) where it cannot be started.
  Child(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& environment);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // leaves no process behind

  // Gives stderr to `line`, line by line, until the child has ended; `on_signal` gets TERM, INT, USR1 and HUP as they
  // come to the launcher, but those that were ignored when it started. Returns the exit code, 128 + signal where it was
  // killed.
  int wait(const std::function<void(const std::string&)>& line, const std::function<void(int)>& on_signal);
  void signal(int number) const;      // to the child itself
  void signal_all(int number) const;  // to every process that descends from it

 private:
  void pass_on(const std::function<void(const std::string&)>& line);
  pid_t pid_ = -1;
  int stdout_ = -1, stderr_ = -1, signals_ = -1;
  std::string partial_;  // of a line
  bool ended_ = false;
};

}  // namespace trireme::launch
