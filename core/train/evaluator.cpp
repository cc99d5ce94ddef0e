// The rounds of an evaluation.
#include "core/train/evaluator.h"

#include <chrono>
#include <cmath>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/train/step.h"

namespace trireme::train {

Evaluator::Evaluator(comm::Group group, const EvalPlan& plan, bool same_world, plugin::Model& model,
                     device::StepBlockRing& block, std::uint64_t seed, device::Stream compute,
                     std::shared_ptr<device::Device> device)
    : group_(group),
      plan_(plan),
      model_(model),
      block_(block),
      seed_(seed),
      compute_(std::move(compute)),
      device_(std::move(device)),
      scalars_(group, plan.locals, model.metric_names().size(), same_world, device_),
      host_(device_, scalars_.sums().size_bytes()) {}

std::optional<Evaluation> Evaluator::run(io::Feed& feed, std::uint64_t step, const std::function<bool()>& between) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> totals(scalars_.sums().size(), 0.0);
  for (std::uint64_t round = 0; round < plan_.rounds(); ++round) {
    group_.progress(step, "evaluation", round);
    fault::point("evaluation");
    for (std::uint32_t i = 0; i < plan_.locals; ++i) {
      const bool last = i + 1 == plan_.locals;
      if (plan_.at(round, i).rows == 0) {
        scalars_.add_nothing(last, compute_);
        continue;
      }
      const auto batch = feed.next(compute_);
      if (!batch) fail(ExitCode::internal, "evaluation at step {}: the feed ended before the data", step);
      view_fields(*batch, fields_);
      // Random numbers go by the number of the micro-batch in the evaluation: the same for every number of ranks.
      const std::uint64_t number = round * plan_.micro_batches + plan_.first + i;
      block_.stage(step, seed_, static_cast<std::uint32_t>(number), 0, compute_);
      const plugin::Loss loss = model_.run(Mode::evaluate, fields_, block_.on_device(), compute_, {});
      scalars_.add(model_, loss, last, compute_);
      feed.release(*batch, compute_);
      model_.reset();
    }
    device::Stream stream = group_.stream();
    stream.copy(host_.span<std::byte>(), std::as_bytes(scalars_.sums()));
    stream.synchronize();
    device_->throw_fault();
    // Rounds are added in their order on the host: the same on every rank and for every number of ranks.
    for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += host_.span<double>()[i];
    if (!between()) return std::nullopt;
  }
  const auto mean = [&](std::size_t i) { return totals[i + 1] == 0 ? std::nan("") : totals[i] / totals[i + 1]; };
  Evaluation evaluation;
  evaluation.loss = mean(0);
  for (std::size_t i = 2; i < totals.size(); i += 2) evaluation.metrics.push_back(mean(i));
  evaluation.samples = plan_.samples;
  evaluation.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return evaluation;
}

}  // namespace trireme::train
