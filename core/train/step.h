// One training step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/step_block.h"
#include "core/optim/optimizer.h"
#include "core/plugin/model.h"
#include "core/train/grad_sync.h"
#include "core/train/reports.h"
#include "io/feed/feed.h"

namespace trireme::train {

// Views of what a session owns; compute thread only. A steady step allocates nothing.
class Step {
 public:
  Step(const Plan& plan, std::uint64_t seed, device::Stream compute, device::StepBlockRing& block, plugin::Model& model,
       GradSync& sync, optim::Optimizer& optimizer, Reports& reports, const comm::Group& group);

  void run(std::uint64_t step, io::Feed& feed);
  // Called as each part of a step begins: "data", "forward", "backward" (for each micro-batch), "reduction", "update",
  // "report" (bench). Null by default.
  std::function<void(const char* phase)> on_phase;

 private:
  void enter(std::uint64_t step, const char* phase);

  Plan plan_;
  std::uint64_t seed_;
  device::Stream compute_;
  device::StepBlockRing& block_;
  plugin::Model& model_;
  GradSync& sync_;
  optim::Optimizer& optimizer_;
  Reports& reports_;
  comm::Group group_;
  autograd::Tape::Ready ready_;
  std::vector<tensor::Tensor> fields_;
};

// A batch's fields as the model takes them.
void view_fields(const io::Batch& batch, std::vector<tensor::Tensor>& fields);

}  // namespace trireme::train
