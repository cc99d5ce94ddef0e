// How a global batch is cut: V micro-batches, dealt to W ranks in neighbouring shares. Pure arithmetic.
#pragma once

#include <cstdint>

#include "core/base/job.h"
#include "io/feed/feed.h"

namespace trireme::train {

struct Plan {
  std::uint32_t world_size = 1, rank = 0;
  std::uint32_t micro_batches = 1;      // V
  std::uint32_t first = 0, locals = 1;  // this rank's micro-batches: [first, first + locals) of V
  std::int64_t batch = 0;               // B, samples
  std::int64_t rows = 0;                // B ÷ V
  std::int64_t samples = 0;             // N of the training data
  std::uint64_t total_steps = 0;
  bool same_world = false;  // bits hold for this world size only

  [[nodiscard]] double epoch_after(std::uint64_t steps) const;
  // True where step s (from 0) is the first with (s+1)·B ≥ (e+1)·N for an epoch e.
  [[nodiscard]] bool ends_epoch(std::uint64_t step) const;
  // This rank's micro-batches from `step` on, in order: step by step, v by v.
  [[nodiscard]] io::Sequence training(std::uint64_t step) const;
};

// Throws Error(usage) naming train.batch, train.micro_batches and the world size where they don't fit, and
// Error(data) where there are fewer samples than a batch. V: the job's, else `recorded` (of a checkpoint), else W.
[[nodiscard]] Plan make_plan(const Job& job, int world_size, int rank, std::int64_t samples, std::uint64_t recorded);

// An evaluation in rounds of V micro-batches of `rows`; the last round is short and ranks may have none in it.
struct EvalPlan {
  std::int64_t samples = 0, rows = 0;
  std::uint32_t micro_batches = 1, first = 0, locals = 1;

  [[nodiscard]] std::uint64_t rounds() const;
  [[nodiscard]] io::MicroBatch at(std::uint64_t round, std::uint32_t local) const;  // rows = 0: none
  [[nodiscard]] io::Sequence sequence() const;                                      // those with rows
};
[[nodiscard]] EvalPlan make_eval_plan(const Job& job, const Plan& plan, std::int64_t samples);

}  // namespace trireme::train
