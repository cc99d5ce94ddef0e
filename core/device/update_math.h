// The arithmetic of one update, for one element and for the scalars before it: the same lines on CPU and CUDA.
// SGD and AdamW as PyTorch writes them (torch.optim.SGD; Loshchilov, Hutter, "Decoupled Weight Decay
// Regularization", 2019), clipping as torch.nn.utils.clip_grad_norm_.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/kernels.h"

namespace trireme::device {

// Linear from lr ÷ warmup to lr over the first `warmup` updates, then constant, or half a cosine from lr to lr_end
// at update `total`, and lr_end from there on.
TRIREME_HOST_DEVICE inline double learning_rate(const Schedule& schedule, std::uint64_t updates_done) {
  if (updates_done < schedule.warmup)
    return schedule.lr * static_cast<double>(updates_done + 1) / static_cast<double>(schedule.warmup);
  if (schedule.total == 0) return schedule.lr;
  if (updates_done >= schedule.total) return schedule.lr_end;
  constexpr double pi = 3.14159265358979323846;
  const double way =
      static_cast<double>(updates_done - schedule.warmup) / static_cast<double>(schedule.total - schedule.warmup);
  return schedule.lr_end + 0.5 * (schedule.lr - schedule.lr_end) * (1.0 + std::cos(pi * way));
}

TRIREME_HOST_DEVICE inline bool is_finite(double value) { return value - value == 0.0; }

// PyTorch's 1e-6 in the denominator; never above 1.
TRIREME_HOST_DEVICE inline double clip_factor(double clip_norm, double norm) {
  if (clip_norm <= 0.0) return 1.0;
  const double factor = clip_norm / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

// What every element of one update shares, rounded to f32 once.
struct UpdateFactors {
  bool apply = false;
  bool nesterov = false;
  float gradient = 0;  // arena gradient → clipped mean gradient
  float rate = 0;      // sgd: lr; adamw: lr ÷ (1 − β₁ᵗ)
  float decay = 0;     // sgd: weight decay; adamw: 1 − lr · weight decay
  float momentum = 0;  // sgd
  float one_minus_beta1 = 0, beta2 = 0, one_minus_beta2 = 0;
  float second_scale = 0;  // 1 ÷ √(1 − β₂ᵗ)
  float epsilon = 0;
};

// Decides whether the update happens, and advances the block's device half. `total_squares`: sum of squares of the
// gradient arena. `norm` (may be null) gets the norm of the mean gradient before clipping.
TRIREME_HOST_DEVICE inline UpdateFactors begin_update(const UpdateRule& rule, double total_squares, bool buffers_finite,
                                                      double total_weight, double n, StepBlock& block, double* norm) {
  UpdateFactors factors;
  const bool finite = is_finite(total_squares) && is_finite(total_weight) && buffers_finite;
  const double mean = total_weight == 0.0 ? 0.0 : n / (static_cast<double>(block.loss_scale) * total_weight);
  const double mean_norm = std::sqrt(total_squares) * mean;
  if (norm != nullptr) *norm = mean_norm;
  // A weight near zero makes a factor that is too large for f32, though all sums are finite.
  const float gradient = static_cast<float>(mean * clip_factor(rule.clip_norm, mean_norm));
  if (!finite || !is_finite(static_cast<double>(gradient))) block.halted = 1;
  if (block.halted != 0 || total_weight == 0.0) {
    ++block.skips;
    return factors;
  }
  const double lr = learning_rate(rule.schedule, block.updates);
  ++block.updates;
  factors.apply = true;
  factors.gradient = gradient;
  if (rule.kind == UpdateRule::Kind::sgd) {
    factors.nesterov = rule.nesterov;
    factors.rate = static_cast<float>(lr);
    factors.decay = static_cast<float>(rule.weight_decay);
    factors.momentum = static_cast<float>(rule.momentum);
    return factors;
  }
  block.beta1_product *= rule.beta1;
  block.beta2_product *= rule.beta2;
  factors.rate = static_cast<float>(lr / (1.0 - block.beta1_product));
  factors.decay = static_cast<float>(1.0 - lr * rule.weight_decay);
  factors.one_minus_beta1 = static_cast<float>(1.0 - rule.beta1);
  factors.beta2 = static_cast<float>(rule.beta2);
  factors.one_minus_beta2 = static_cast<float>(1.0 - rule.beta2);
  factors.second_scale = static_cast<float>(1.0 / std::sqrt(1.0 - block.beta2_product));
  factors.epsilon = static_cast<float>(rule.epsilon);
  return factors;
}

// The factors of elements without weight decay.
TRIREME_HOST_DEVICE inline UpdateFactors without_decay(UpdateFactors factors, UpdateRule::Kind kind) {
  factors.decay = kind == UpdateRule::Kind::sgd ? 0.0f : 1.0f;
  return factors;
}

// One element. sgd without momentum:
TRIREME_HOST_DEVICE inline void sgd_step(float& parameter, float gradient, const UpdateFactors& f) {
  parameter -= f.rate * (gradient * f.gradient + f.decay * parameter);
}
// With momentum. A velocity of 0 at the start gives PyTorch's first step, which copies the gradient.
TRIREME_HOST_DEVICE inline void momentum_step(float& parameter, float gradient, float& velocity,
                                              const UpdateFactors& f) {
  const float g = gradient * f.gradient + f.decay * parameter;
  velocity = f.momentum * velocity + g;
  parameter -= f.rate * (f.nesterov ? g + f.momentum * velocity : velocity);
}
TRIREME_HOST_DEVICE inline void adamw_step(float& parameter, float gradient, float& first, float& second,
                                           const UpdateFactors& f) {
  const float g = gradient * f.gradient;
  first += (g - first) * f.one_minus_beta1;
  second = f.beta2 * second + f.one_minus_beta2 * g * g;
  parameter = parameter * f.decay - f.rate * first / (std::sqrt(second) * f.second_scale + f.epsilon);
}

}  // namespace trireme::device
