// `trireme bench step`: training steps of a job, taken apart, each part beside its floor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/job.h"

namespace trireme::train {

struct BenchOptions {
  std::int64_t warm_up = 10, steps = 50;
};

// Trains warm_up + steps steps on the job's data without run directory or checkpoint; every rank calls it. Rank 0
// prints its own figures, as a table or as one JSON document. Returns an exit code. Throws Error(usage) on a device
// that is no CPU.
[[nodiscard]] int bench_step(const Job& job, const BenchOptions& options, bool json);

}  // namespace trireme::train
