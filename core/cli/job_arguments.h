// The arguments of the commands that run a job (train, eval, predict, bench step): declared once, so that `trireme
// launch` reads the same ones before it starts any rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/job.h"
#include "core/cli/command.h"
#include "core/train/bench.h"
#include "core/train/run.h"

namespace trireme::cli {

struct JobArguments {
  std::string file;
  std::vector<std::string> sets;  // KEY=VALUE
  std::string run_directory;      // relative to the working directory; empty: as the job says
  std::string resume = "auto";    // train
  bool help_keys = false;         // train
  bool markdown = false;          // with help_keys
  std::string checkpoint;         // eval, predict
  std::string output;             // predict
  bool json = false;              // eval, bench
  train::BenchOptions bench;      // bench

  // The job, checked and with the run directory in force. Throws Error(usage).
  [[nodiscard]] Job job() const;
  [[nodiscard]] train::Resume resumption() const;
};

// Adds the options of `name` ("train", "eval", "predict" or "bench").
void add_job_options(Command command, std::string_view name, JobArguments& into);

// True where `word` is a command that ranks can run.
[[nodiscard]] bool is_rank_command(std::string_view word);

}  // namespace trireme::cli
