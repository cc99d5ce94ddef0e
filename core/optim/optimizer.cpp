// The update rule of a job, and the moments that its fused pass keeps.
#include "core/optim/optimizer.h"

#include "core/base/log.h"
#include "core/device/update_math.h"

namespace trireme::optim {

device::UpdateRule rule_of(const Job::Optimizer& job, std::uint64_t total_steps) {
  device::UpdateRule rule;
  rule.kind = job.kind == "adamw" ? device::UpdateRule::Kind::adamw : device::UpdateRule::Kind::sgd;
  rule.schedule.lr = job.lr;
  rule.schedule.lr_end = job.lr_end;
  rule.schedule.warmup = static_cast<std::uint64_t>(job.warmup_steps);
  if (job.schedule == "cosine") {
    if (rule.schedule.warmup >= total_steps) {
      log::warn(
          "optimizer.warmup_steps = {}: the run has {} steps, so the learning rate never reaches {} and the cosine "
          "never begins",
          job.warmup_steps, total_steps, job.lr);
    }
    rule.schedule.total = total_steps;
  }
  rule.momentum = job.momentum;
  rule.nesterov = job.nesterov;
  rule.beta1 = job.beta1;
  rule.beta2 = job.beta2;
  rule.epsilon = job.epsilon;
  rule.weight_decay = job.weight_decay;
  rule.clip_norm = job.clip_norm;
  return rule;
}

double learning_rate(const device::Schedule& schedule, std::uint64_t updates) {
  return device::learning_rate(schedule, updates);
}

namespace {

bool has_moment1(const device::UpdateRule& rule) {
  return rule.kind == device::UpdateRule::Kind::adamw || rule.momentum != 0;
}

}  // namespace

Optimizer::Optimizer(const device::UpdateRule& rule, std::shared_ptr<device::Device> device, std::uint64_t elements)
    : rule_(rule), device_(std::move(device)) {
  const std::size_t bytes = elements * sizeof(float);
  if (has_moment1(rule_)) moment1_ = device::Buffer(device_, bytes);
  if (rule_.kind == device::UpdateRule::Kind::adamw) moment2_ = device::Buffer(device_, bytes);
}

void Optimizer::update(const Reduced& reduced, std::span<float> parameters, std::span<float> buffers, Range decayed,
                       device::StepBlock* block, double* norm, device::Stream& stream) {
  device::UpdateArguments arguments;
  arguments.rule = rule_;
  arguments.parameters = parameters;
  arguments.gradients = reduced.gradients;
  arguments.moment1 = moment1();
  arguments.moment2 = moment2();
  arguments.decayed = decayed;
  arguments.tile_squares = reduced.tile_squares;
  arguments.buffer_checks = reduced.buffer_checks;
  arguments.buffers = buffers;
  arguments.buffer_sums = reduced.buffer_sums;
  arguments.buffer_factor = reduced.buffer_factor;
  arguments.total_weight = reduced.weight;
  arguments.total_loss = reduced.loss;
  arguments.n = reduced.n;
  arguments.block = block;
  arguments.norm = norm;
  device_->kernels().update(arguments, stream);
}

}  // namespace trireme::optim
