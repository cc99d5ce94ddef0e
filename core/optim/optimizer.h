// The optimizer: moments and the fused update over the parameter arena.
#pragma once

#include <memory>
#include <span>

#include "core/base/job.h"
#include "core/base/range.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/device/step_block.h"

namespace trireme::optim {

// Device addresses of what the ranks agreed on for one step.
struct Reduced {
  std::span<const float> gradients;
  std::span<const double> tile_squares;   // of the gradients
  std::span<const double> buffer_checks;  // of the reduced buffers
  std::span<const float> buffer_sums;     // tree sums of the micro-batches' new buffers
  float buffer_factor = 0;                // 1 ÷ V makes them means
  const double* weight = nullptr;         // total weight of the loss
  const double* loss = nullptr;           // its total sum
  double n = 1;                           // weight of one full micro-batch
};

// Update rule of a job; `total_steps` is the last step, for the cosine.
[[nodiscard]] device::UpdateRule rule_of(const Job::Optimizer& job, std::uint64_t total_steps);
// Learning rate after `updates` updates (the same formula that the device evaluates).
[[nodiscard]] double learning_rate(const device::Schedule& schedule, std::uint64_t updates);

class Optimizer {
 public:
  Optimizer(const device::UpdateRule& rule, std::shared_ptr<device::Device> device, std::uint64_t elements);

  // Queues the update; `norm` (device, may be null) gets the gradient norm before clipping.
  void update(const Reduced& reduced, std::span<float> parameters, std::span<float> buffers, Range decayed,
              device::StepBlock* block, double* norm, device::Stream& stream);
  // Empty spans where the rule has no such moment.
  [[nodiscard]] std::span<float> moment1() const { return moment1_.span<float>(); }
  [[nodiscard]] std::span<float> moment2() const { return moment2_.span<float>(); }
  [[nodiscard]] const device::UpdateRule& rule() const { return rule_; }

 private:
  device::UpdateRule rule_;
  std::shared_ptr<device::Device> device_;
  device::Buffer moment1_, moment2_;
};

}  // namespace trireme::optim
