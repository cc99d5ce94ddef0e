// `trireme launch`: starts the ranks by srun inside a Slurm allocation, else by mpirun, and sees them through.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::launch {

struct LaunchOptions {
  int ranks = 0;                        // 0: SLURM_NTASKS in an allocation, else 1
  std::vector<std::string> arguments;   // "train", "job.toml", … for each rank
  std::filesystem::path run_directory;  // whose summary.json decides the exit code; empty: the launcher's own
  bool verbose = false;                 // print the command
};

// Turns TERM, INT and USR1 into USR1 to the ranks; prints the first cause last; returns the exit code that stands in
// summary.json, and completes that file when rank 0 died (result "died" or "failed", first cause, exit code 71 or what
// the launcher saw); the summary of a run that another launcher started is never touched. Restarts nothing itself: job
// scripts decide by the code. No process of the run is left when it returns.
[[nodiscard]] int launch(const LaunchOptions& options);

// Command line that would be run (srun: --mpi=pmix, --cpus-per-task, --kill-on-bad-exit; mpirun: slots, binding, root,
// idle yield). For --dry-run and tests.
[[nodiscard]] std::vector<std::string> command(const LaunchOptions& options);

}  // namespace trireme::launch
