// run_job(ranks, job, faults) → exit code, state_sha256, output: the one helper of all tests of whole runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/jobs/process.h"

namespace trireme::tests {

struct TestJob {
  std::string toml;               // the job file, but for [run]: the run directory is FOLDER/run
  std::vector<std::string> sets;  // KEY=VALUE
  std::filesystem::path folder;   // of job.toml and run; made if need be
  std::string command = "train";
  std::vector<std::string> arguments;  // further ones: "--resume", "must"
};

struct Faults {
  std::string inject;  // TRIREME_FAULT, as core/base/fault.h has it
  // Signals when a line of the output has this text, once each; to the process that run_job started.
  struct Signal {
    std::string on_line;
    int number = 0;
  };
  std::vector<Signal> signals;
  bool by_mpirun = false;                     // mpirun itself in place of `trireme launch`
  std::vector<std::string> mpirun_arguments;  // with by_mpirun: "--enable-recovery"
  // With by_mpirun: what single ranks are given besides; entry r is rank r's.
  struct Rank {
    std::vector<std::string> arguments;    // "--set", "train.seed=2"
    std::vector<std::string> environment;  // "NAME=VALUE"
  };
  std::vector<Rank> each;
  std::vector<std::pair<std::string, std::string>> environment;
  double timeout_s = 120;
};

struct JobResult {
  int exit_code = -1;
  std::string state_sha256;  // of the newest committed checkpoint; empty: none
  std::string checkpoint;    // its folder's name
  std::string output;
  std::filesystem::path run_directory;
  double seconds = 0;
  double gone_after_fault_s = 0;  // from the line "fault: …" (or the first signal) until no process was left
  bool timed_out = false;
  std::vector<pid_t> left_behind;
};
[[nodiscard]] JobResult run_job(int ranks, const TestJob& job, const Faults& faults = {});

// The built program, for tests of single commands.
[[nodiscard]] std::string program();
// Runs `trireme WORDS…`.
[[nodiscard]] Finished run_trireme(const std::vector<std::string>& words,
                                   const std::vector<std::pair<std::string, std::string>>& environment = {},
                                   const std::string& folder = "");
// state_sha256 of a checkpoint, or of the newest in a run directory; verifies it.
[[nodiscard]] std::string state_of(const std::filesystem::path& checkpoint_or_run);
[[nodiscard]] std::string read_text(const std::filesystem::path& file);  // empty where there is none

// A folder below testing::TempDir() of its own, removed with it (kept where TRIREME_KEEP is set).
class TestFolder {
 public:
  explicit TestFolder(const std::string& name);
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace trireme::tests
