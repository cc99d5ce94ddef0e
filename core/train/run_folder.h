// The run directory of a training run: its owner, its token, its summary, its logs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/base/job.h"
#include "core/comm/group.h"
#include "io/checkpoint/lease.h"
#include "io/telemetry/recorder.h"

namespace trireme::train {

class RunFolder {
 public:
  // Collective: rank 0 makes the directory and takes the lease; all ranks check that they see it, and open their logs.
  // What an earlier start left there stays as it is. Throws AlikeError.
  RunFolder(comm::Group& group, const Job& job);
  // Once nothing can refuse the run any more: rank 0 writes job.toml and sets the summary to "running". Collective.
  void begin(comm::Group& group, const Job& job);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  [[nodiscard]] const std::string& attempt() const { return attempt_; }  // the same on all ranks
  [[nodiscard]] io::Summary& summary() { return *summary_; }             // rank 0's is written
  // "done", "stopped", … of the summary that lies there; empty where there is none. Rank 0.
  [[nodiscard]] std::string last_result() const;
  // Throws Error(io) on rank 0 once another run took the directory over. Any thread.
  void check_owner() const;
  // The summary's end: result, exit code, first cause. Rank 0 writes, while it owns the directory; where the run never
  // began, only if no earlier one has left a summary.
  void close(const std::string& result, int code, const std::string& first_cause);

 private:
  std::filesystem::path path_;
  std::string attempt_;
  bool owner_ = false, begun_ = false;
  std::unique_ptr<io::Lease> lease_;
  std::unique_ptr<io::Summary> summary_;
};

}  // namespace trireme::train
