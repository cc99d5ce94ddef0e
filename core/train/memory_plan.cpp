// Adds up what a run will hold.
#include "core/train/memory_plan.h"

#include <algorithm>

#include "core/train/loop.h"

namespace trireme::train {
namespace {

std::uint64_t bytes_of_data(const Job& job, const io::Dataset& data, bool shuffled) {
  const std::uint64_t kept = std::min(data.decoded_bytes(), static_cast<std::uint64_t>(job.data.memory_mib) << 20);
  return kept + (shuffled ? io::order_bytes(data.samples(), io::Shuffle::global) : 0);
}

}  // namespace

std::string MemoryPlan::text() const {
  const auto mib = [](std::uint64_t bytes) { return (bytes + (std::uint64_t{1} << 19)) >> 20; };
  return fmt::format(
      "memory: about {} MiB on a rank ({} now, {} for training data, {} for evaluation data, {} for saves)",
      mib(total()), mib(resident), mib(data), mib(evaluation), mib(saves));
}

MemoryPlan plan_memory(const LoopParts& parts, std::uint64_t resident, std::uint64_t pinned) {
  MemoryPlan plan;
  plan.resident = resident;
  plan.data = pinned + bytes_of_data(parts.job, *parts.train_data, parts.job.data.shuffle == "global");
  if (parts.eval_data) {
    const EvalPlan eval = make_eval_plan(parts.job, parts.plan, parts.eval_data->samples());
    plan.evaluation = pinned * static_cast<std::uint64_t>(eval.rows) / static_cast<std::uint64_t>(parts.plan.rows) +
                      bytes_of_data(parts.job, *parts.eval_data, false);
  }
  for (const io::ArenaState& arena : state_arenas(parts.model, &parts.optimizer))
    plan.saves += arena.slice(parts.plan.rank, parts.plan.world_size).size() * size_of(arena.dtype);
  return plan;
}

}  // namespace trireme::train
