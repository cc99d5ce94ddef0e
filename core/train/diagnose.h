// Names the culprit of a non-finite step by repeating it, micro-batch by micro-batch, without update.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/job.h"
#include "core/comm/group.h"
#include "core/device/step_block.h"
#include "core/plugin/model.h"
#include "core/train/plan.h"
#include "io/dataset/dataset.h"

namespace trireme::train {

// Collective. `step` was skipped, so parameters are still its own. The text names step, micro-batch, and parameter,
// loss or buffer with the index of its first bad value.
[[nodiscard]] std::string diagnose(comm::Group& group, const Job& job, const Plan& plan, std::uint64_t step,
                                   std::shared_ptr<const io::Dataset> data, plugin::Model& model,
                                   device::StepBlockRing& block, std::shared_ptr<device::Device> device);

}  // namespace trireme::train
