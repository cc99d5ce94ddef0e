// The arithmetic of batches, micro-batches, steps and epochs.
#include "core/train/plan.h"

#include <algorithm>
#include <bit>

#include "core/base/error.h"

namespace trireme::train {

double Plan::epoch_after(std::uint64_t steps) const {
  return static_cast<double>(steps) * static_cast<double>(batch) / static_cast<double>(samples);
}

bool Plan::ends_epoch(std::uint64_t step) const {
  const auto n = static_cast<std::uint64_t>(samples), b = static_cast<std::uint64_t>(batch);
  return (step + 1) * b / n > step * b / n;
}

io::Sequence Plan::training(std::uint64_t step) const {
  const Plan plan = *this;
  return [plan, step](std::uint64_t k) -> std::optional<io::MicroBatch> {
    const std::uint64_t s = step + k / plan.locals, v = plan.first + k % plan.locals;
    if (s >= plan.total_steps) return std::nullopt;
    return io::MicroBatch{s * static_cast<std::uint64_t>(plan.batch) + v * static_cast<std::uint64_t>(plan.rows),
                          plan.rows};
  };
}

Plan make_plan(const Job& job, int world_size, int rank, std::int64_t samples, std::uint64_t recorded) {
  const auto w = static_cast<std::uint64_t>(world_size);
  const std::int64_t b = job.train.batch;
  std::uint64_t v = static_cast<std::uint64_t>(job.train.micro_batches);
  if (v == 0) v = recorded != 0 ? recorded : w;
  if (b % static_cast<std::int64_t>(v) != 0)
    fail(ExitCode::usage, "train.batch = {} is no multiple of train.micro_batches = {}: choose a batch of {} or {}", b,
         v, std::max<std::int64_t>(1, b / static_cast<std::int64_t>(v)) * static_cast<std::int64_t>(v),
         (b / static_cast<std::int64_t>(v) + 1) * static_cast<std::int64_t>(v));
  Plan plan;
  plan.same_world = !std::has_single_bit(w) || !std::has_single_bit(v) || job.reproducible == "same-world";
  if (v % w != 0)
    fail(
        ExitCode::usage,
        "{} ranks do not divide train.micro_batches = {}: start {} ranks, or set train.micro_batches to a multiple of "
        "{}",
        w, v,
        [&] {
          std::string allowed;
          for (std::uint64_t n = 1; n <= v; ++n)
            if (v % n == 0 && (recorded == 0 || std::has_single_bit(n)))
              allowed += (allowed.empty() ? "" : ", ") + std::to_string(n);
          return allowed;
        }(),
        w);
  if (samples < b)
    fail(ExitCode::data, "[data] train has {} samples, fewer than one batch of train.batch = {}", samples, b);
  plan.world_size = static_cast<std::uint32_t>(w);
  plan.rank = static_cast<std::uint32_t>(rank);
  plan.micro_batches = static_cast<std::uint32_t>(v);
  plan.locals = static_cast<std::uint32_t>(v / w);
  plan.first = plan.rank * plan.locals;
  plan.batch = b;
  plan.rows = b / static_cast<std::int64_t>(v);
  plan.samples = samples;
  plan.total_steps = job.train.steps > 0 ? static_cast<std::uint64_t>(job.train.steps)
                                         : static_cast<std::uint64_t>((job.train.epochs * samples + b - 1) / b);
  return plan;
}

std::uint64_t EvalPlan::rounds() const {
  const std::int64_t round = rows * static_cast<std::int64_t>(micro_batches);
  return static_cast<std::uint64_t>((samples + round - 1) / round);
}

io::MicroBatch EvalPlan::at(std::uint64_t round, std::uint32_t local) const {
  const auto begin = static_cast<std::int64_t>(round * micro_batches + first + local) * rows;
  return {static_cast<std::uint64_t>(begin), std::clamp<std::int64_t>(samples - begin, 0, rows)};
}

io::Sequence EvalPlan::sequence() const {
  const EvalPlan plan = *this;
  return [plan](std::uint64_t k) -> std::optional<io::MicroBatch> {
    const std::uint64_t round = k / plan.locals;
    if (round >= plan.rounds()) return std::nullopt;
    const io::MicroBatch at = plan.at(round, static_cast<std::uint32_t>(k % plan.locals));
    // Micro-batches lie in order, so after one without rows none follows on this rank.
    return at.rows > 0 ? std::optional(at) : std::nullopt;
  };
}

EvalPlan make_eval_plan(const Job& job, const Plan& plan, std::int64_t samples) {
  EvalPlan eval;
  eval.samples = samples;
  eval.micro_batches = plan.micro_batches;
  eval.first = plan.first;
  eval.locals = plan.locals;
  const std::int64_t batch = job.eval.batch > 0 ? job.eval.batch : plan.batch;
  eval.rows = std::max<std::int64_t>(1, batch / static_cast<std::int64_t>(plan.micro_batches));
  return eval;
}

}  // namespace trireme::train
