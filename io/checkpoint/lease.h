// One owner of a run directory. `lease.json` holds host, pid with start time, Slurm job and restart count, attempt;
// renewed every 5 s by a thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

namespace trireme::io {

// Tests shorten them. A holder is given up after `expiry` without renewal.
struct LeaseTimes {
  std::chrono::milliseconds renewal{5000}, expiry{30000};
};

class Lease {
 public:
  // Rank 0. Takes over at once a dead pid of the same host or the same Slurm job restarted; else watches for 30 s by
  // its own clock (never by time stamps) and takes over what was not renewed; otherwise Error(usage) that names the
  // holder. Takes under flock on lease.lock, so that of two takers one wins; where the file system has no locks, which
  // is warned of, two that start at the same instant can both win, until the first of them renews or checks.
  Lease(const std::filesystem::path& run_directory, const std::string& attempt, const LeaseTimes& times = {});
  ~Lease();  // gives it back
  // Throws Error(io) once the lease was lost to another owner. Any thread.
  void check() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Rank 0 writes a token for `attempt` into the run directory; every other rank must read it, else the directory is not
// shared by all hosts: Error(usage) naming host and directory (waits up to 10 s for slow file systems).
void write_token(const std::filesystem::path& run_directory, const std::string& attempt);
void check_token(const std::filesystem::path& run_directory, const std::string& attempt, int rank,
                 std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace trireme::io
