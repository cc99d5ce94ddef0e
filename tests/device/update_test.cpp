// The fused update against the same formulas in f64, against closed forms, and its rules for skipping.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/threads.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/device/update_math.h"

namespace trireme::device {
namespace {

constexpr std::size_t size = 3 * 4096 + 77, decayed = 4096;

std::vector<float> uniform(std::uint64_t seed, float width) {
  const RandomKey key = random_key(seed, Purpose::parameter, 0, 0, 0);
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = (to_uniform(random_bits(key, i)) - 0.5f) * width;
  return values;
}

// One model's state and its f64 twin, which follows PyTorch's formulas (torch.optim.SGD and AdamW).
struct Training {
  UpdateRule rule;
  double weight = 96, n = 32;
  StepBlock block;
  double norm = -1;
  std::vector<float> parameters = uniform(1, 2), first = std::vector<float>(size), second = std::vector<float>(size);
  std::vector<double> p{parameters.begin(), parameters.end()}, m = std::vector<double>(size), v = m;
  double reference_norm = 0;
  std::vector<double> buffer_checks{0.0, 2.0};

  void step(std::vector<float> gradients) {
    std::vector<double> squares(tiles_of(size));
    Stream stream = make_cpu()->compute_stream();
    const Kernels& kernels = make_cpu()->kernels();
    kernels.tile_squares(gradients, squares, stream);
    UpdateArguments a;
    a.rule = rule;
    a.parameters = parameters;
    a.gradients = gradients;
    a.moment1 = first;
    a.moment2 = rule.kind == UpdateRule::Kind::adamw ? std::span<float>(second) : std::span<float>();
    a.decayed = {0, decayed};
    a.tile_squares = squares;
    a.buffer_checks = buffer_checks;
    a.total_weight = &weight;
    a.n = n;
    a.block = &block;
    a.norm = &norm;
    kernels.update(a, stream);
  }

  void reference(const std::vector<float>& gradients, double lr, int t) {
    const double mean = n / (static_cast<double>(block.loss_scale) * weight);
    double sum = 0;
    for (const float g : gradients) sum += static_cast<double>(g) * mean * static_cast<double>(g) * mean;
    reference_norm = std::sqrt(sum);
    const double clip = rule.clip_norm > 0 ? std::min(1.0, rule.clip_norm / (reference_norm + 1e-6)) : 1.0;
    for (std::size_t i = 0; i < size; ++i) {
      double g = static_cast<double>(gradients[i]) * mean * clip;
      const double decay = i < decayed ? rule.weight_decay : 0.0;
      if (rule.kind == UpdateRule::Kind::sgd) {
        g += decay * p[i];
        m[i] = t == 1 ? g : rule.momentum * m[i] + g;
        p[i] -= lr * (rule.momentum == 0 ? g : rule.nesterov ? g + rule.momentum * m[i] : m[i]);
      } else {
        p[i] -= lr * decay * p[i];
        m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g;
        v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g * g;
        p[i] -= lr / (1 - std::pow(rule.beta1, t)) * m[i] /
                (std::sqrt(v[i]) / std::sqrt(1 - std::pow(rule.beta2, t)) + rule.epsilon);
      }
    }
  }

  // f32 keeps 2⁻²⁴ of a value near 1 in each of the few roundings of a step.
  void expect_near(int steps) const {
    const double tolerance = 4e-7 * steps;
    double worst = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double difference = std::abs(static_cast<double>(parameters[i]) - p[i]);
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
    }
    EXPECT_LT(worst, tolerance);
  }
};

void follow(Training& run, int steps) {
  for (int t = 1; t <= steps; ++t) {
    const auto gradients = uniform(static_cast<std::uint64_t>(10 + t), 1.0f);
    run.reference(gradients, run.rule.schedule.lr, t);
    run.step(gradients);
    EXPECT_NEAR(run.norm, run.reference_norm, 1e-12 * run.reference_norm);
  }
  EXPECT_EQ(run.block.updates, static_cast<std::uint64_t>(steps));
  EXPECT_EQ(run.block.skips, 0u);
  EXPECT_EQ(run.block.halted, 0u);
  run.expect_near(steps);
}

TEST(Update, SgdWithoutMomentum) {
  Training run;
  run.rule.schedule.lr = 0.05;
  run.rule.weight_decay = 0.1;
  follow(run, 5);
  EXPECT_EQ(run.first, std::vector<float>(size));
}

TEST(Update, SgdWithMomentumStartsLikePyTorch) {
  Training run;
  run.rule.schedule.lr = 0.05;
  run.rule.momentum = 0.9;
  run.rule.weight_decay = 0.01;
  follow(run, 8);
}

TEST(Update, SgdNesterovClipped) {
  Training run;
  run.rule.schedule.lr = 0.05;
  run.rule.momentum = 0.9;
  run.rule.nesterov = true;
  run.rule.clip_norm = 0.5;
  follow(run, 8);
  EXPECT_GT(run.norm, 5.0);  // so it was clipped
}

TEST(Update, AdamwWithDecoupledDecay) {
  Training run;
  run.rule.kind = UpdateRule::Kind::adamw;
  run.rule.schedule.lr = 1e-2;
  run.rule.beta1 = 0.9;
  run.rule.beta2 = 0.999;
  run.rule.epsilon = 1e-8;
  run.rule.weight_decay = 0.1;
  follow(run, 12);
  EXPECT_NEAR(run.block.beta1_product, std::pow(0.9, 12), 1e-15);
  EXPECT_NEAR(run.block.beta2_product, std::pow(0.999, 12), 1e-15);
}

// The formulas with every operation rounded by itself: the bits of a processor without fused multiply-add, on every one.
TEST(Update, RoundsLikeAProcessorWithoutFusedMultiplyAdd) {
  const auto rounded = [](float value) {
    volatile float stored = value;
    return static_cast<float>(stored);
  };
  const auto gradients = uniform(7, 1.0f);
  Training sgd, adamw;
  sgd.rule.schedule.lr = 0.05;
  sgd.rule.momentum = 0.9;
  sgd.rule.weight_decay = 0.1;
  adamw.rule.kind = UpdateRule::Kind::adamw;
  adamw.rule.schedule.lr = 1e-2;
  adamw.rule.beta1 = 0.9;
  adamw.rule.beta2 = 0.999;
  adamw.rule.epsilon = 1e-8;
  adamw.rule.weight_decay = 0.1;
  for (Training* run : {&sgd, &adamw}) {
    run->first = uniform(8, 1.0f);
    for (float& value : run->second = uniform(9, 1.0f)) value = std::abs(value);
    std::vector<float> p = run->parameters, m = run->first, v = run->second;
    StepBlock block;
    const UpdateFactors f = begin_update(run->rule, 1.0, true, run->weight, run->n, block, nullptr);
    const bool adam = run == &adamw;
    for (std::size_t i = 0; i < size; ++i) {
      const float decay = i < decayed ? f.decay : adam ? 1.0f : 0.0f;
      const float scaled = rounded(gradients[i] * f.gradient);
      if (adam) {
        m[i] = rounded(m[i] + rounded(rounded(scaled - m[i]) * f.one_minus_beta1));
        v[i] = rounded(rounded(f.beta2 * v[i]) + rounded(rounded(f.one_minus_beta2 * scaled) * scaled));
        const float below = rounded(rounded(rounded(std::sqrt(v[i])) * f.second_scale) + f.epsilon);
        p[i] = rounded(rounded(p[i] * decay) - rounded(rounded(f.rate * m[i]) / below));
      } else {
        m[i] = rounded(rounded(f.momentum * m[i]) + rounded(scaled + rounded(decay * p[i])));
        p[i] = rounded(p[i] - rounded(f.rate * m[i]));
      }
    }
    run->step(gradients);
    EXPECT_EQ(run->first, m);
    EXPECT_EQ(run->parameters, p);
    if (adam) {
      EXPECT_EQ(run->second, v);
    }
  }
}

// n ÷ weight is too large for f32 though all sums are finite: nothing is changed, and the run is told to be diverged.
TEST(Update, AWeightNearZeroHalts) {
  for (const double clip : {0.0, 1.0}) {
    Training run;
    run.rule.schedule.lr = 0.1;
    run.rule.clip_norm = clip;
    run.weight = 1e-310;
    const std::vector<float> before = run.parameters;
    run.step(uniform(3, 1.0f));
    EXPECT_EQ(run.parameters, before);
    EXPECT_EQ(run.block.halted, 1u);
    EXPECT_EQ(run.block.skips, 1u);
    EXPECT_EQ(run.block.updates, 0u);
  }
}

TEST(Update, LossScaleCancels) {
  Training plain, scaled;
  for (Training* run : {&plain, &scaled}) run->rule.schedule.lr = 0.1;
  scaled.block.loss_scale = 1024;
  auto gradients = uniform(3, 1.0f);
  plain.step(gradients);
  for (float& g : gradients) g *= 1024;
  scaled.step(gradients);
  EXPECT_EQ(plain.parameters, scaled.parameters);  // a power of two scales without rounding
  EXPECT_EQ(plain.norm, scaled.norm);
}

TEST(Update, AdamwFirstStepMovesByTheLearningRate) {
  Training run;
  run.rule.kind = UpdateRule::Kind::adamw;
  run.rule.schedule.lr = 0.125;
  run.rule.beta1 = 0.9;
  run.rule.beta2 = 0.999;
  run.rule.epsilon = 0;
  const auto start = run.parameters;
  run.step(std::vector<float>(size, -3.0f));
  for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(run.parameters[i] - start[i], 0.125, 1e-6);
}

TEST(Update, ANonFiniteGradientLatchesHalted) {
  Training run;
  run.rule.schedule.lr = 0.1;
  run.rule.momentum = 0.9;
  const auto before = run.parameters;
  auto gradients = uniform(3, 1.0f);
  gradients[5000] = std::numeric_limits<float>::infinity();
  run.step(gradients);
  EXPECT_EQ(run.block.halted, 1u);
  EXPECT_EQ(run.block.skips, 1u);
  EXPECT_EQ(run.block.updates, 0u);
  EXPECT_FALSE(std::isfinite(run.norm));
  run.step(uniform(4, 1.0f));  // a good one, but halted
  EXPECT_EQ(run.block.skips, 2u);
  EXPECT_EQ(run.parameters, before);
  EXPECT_EQ(run.first, std::vector<float>(size));
}

TEST(Update, ANonFiniteBufferHalts) {
  Training run;
  run.rule.schedule.lr = 0.1;
  run.buffer_checks[1] = std::numeric_limits<double>::quiet_NaN();
  const auto before = run.parameters;
  run.step(uniform(3, 1.0f));
  EXPECT_EQ(run.block.halted, 1u);
  EXPECT_EQ(run.parameters, before);
}

TEST(Update, WeightZeroSkipsWithoutHalting) {
  Training run;
  run.rule.kind = UpdateRule::Kind::adamw;
  run.rule.schedule.lr = 0.1;
  run.rule.beta1 = 0.9;
  run.rule.beta2 = 0.99;
  const auto before = run.parameters;
  run.weight = 0;
  run.step(std::vector<float>(size));
  EXPECT_EQ(run.block.skips, 1u);
  EXPECT_EQ(run.block.halted, 0u);
  EXPECT_EQ(run.block.beta1_product, 1.0);
  EXPECT_EQ(run.parameters, before);
  EXPECT_EQ(run.norm, 0.0);
  run.weight = 32;
  run.step(uniform(3, 1.0f));
  EXPECT_EQ(run.block.updates, 1u);
  EXPECT_NE(run.parameters, before);
}

TEST(Update, ThreadsChangeNoBit) {
  Training one, two;
  for (Training* run : {&one, &two}) {
    run->rule.kind = UpdateRule::Kind::adamw;
    run->rule.schedule.lr = 0.01;
    run->rule.beta1 = 0.9;
    run->rule.beta2 = 0.99;
    run->rule.epsilon = 1e-8;
  }
  one.step(uniform(3, 1.0f));
  set_compute_threads(2);
  two.step(uniform(3, 1.0f));
  set_compute_threads(1);
  EXPECT_EQ(one.parameters, two.parameters);
  EXPECT_EQ(one.first, two.first);
  EXPECT_EQ(one.second, two.second);
}

TEST(Update, MissingMomentsAreRefused) {
  Training run;
  run.rule.momentum = 0.9;
  run.first.clear();
  EXPECT_THROW(run.step(uniform(3, 1.0f)), Error);
}

TEST(Schedule, WarmsUpThenStaysOrFollowsHalfACosine) {
  const Schedule constant{0.5, 0, 4, 0};
  EXPECT_DOUBLE_EQ(learning_rate(constant, 0), 0.125);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 2), 0.375);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 3), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 1'000'000), 0.5);
  const Schedule cosine{1.0, 0.2, 10, 110};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 10), 1.0);
  EXPECT_NEAR(learning_rate(cosine, 60), 0.6, 1e-15);
  EXPECT_NEAR(learning_rate(cosine, 35), 0.6 + 0.4 * std::numbers::sqrt2 / 2, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 111), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(Schedule{1.0, 0.1, 5, 5}, 5), 0.1);
}

}  // namespace
}  // namespace trireme::device
