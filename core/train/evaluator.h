// Evaluation in rounds of V micro-batches; sums follow the tree of training, so every number of ranks gives the same
// bits. Each round ends in host words: a stop is honoured there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/comm/group.h"
#include "core/device/step_block.h"
#include "core/plugin/model.h"
#include "core/train/plan.h"
#include "core/train/scalar_sync.h"
#include "io/feed/feed.h"

namespace trireme::train {

struct Evaluation {
  double loss = 0;
  std::vector<double> metrics;  // in the order of metric_names
  std::int64_t samples = 0;
  double seconds = 0;
};

class Evaluator {
 public:
  Evaluator(comm::Group group, const EvalPlan& plan, bool same_world, plugin::Model& model,
            device::StepBlockRing& block, std::uint64_t seed, device::Stream compute,
            std::shared_ptr<device::Device> device);

  // Rounds over a feed of plan.sequence(). `between` runs after each round on all ranks; false ends it: none is
  // returned.
  [[nodiscard]] std::optional<Evaluation> run(io::Feed& feed, std::uint64_t step, const std::function<bool()>& between);

 private:
  comm::Group group_;
  EvalPlan plan_;
  plugin::Model& model_;
  device::StepBlockRing& block_;
  std::uint64_t seed_;
  device::Stream compute_;
  std::shared_ptr<device::Device> device_;
  ScalarSync scalars_;
  device::PinnedBuffer host_;
  std::vector<tensor::Tensor> fields_;
};

}  // namespace trireme::train
