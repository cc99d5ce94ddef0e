// The runs that a command can ask for. Each is called by every rank; throws Error; returns an exit code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/job.h"

namespace trireme::train {

// --resume: auto goes on from the newest sound checkpoint, if there is one; never refuses a run directory that has
// checkpoints; must refuses one that has none; a path names a checkpoint.
struct Resume {
  enum class Kind { automatic, never, must, path } kind = Kind::automatic;
  std::filesystem::path path;
};

[[nodiscard]] int train(const Job& job, const Resume& resume);
// Evaluates a checkpoint (default: the best, else the newest of the run directory) on [data] eval; prints metrics; with
// `json` as one document.
[[nodiscard]] int evaluate(const Job& job, const std::filesystem::path& checkpoint, bool json);
// Runs predict over [data] eval and writes one HDF5 file with a dataset for each output.
[[nodiscard]] int predict(const Job& job, const std::filesystem::path& checkpoint, const std::filesystem::path& output);

}  // namespace trireme::train
