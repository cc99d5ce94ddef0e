// The optimizer through the CPU's kernels against an f64 reference written from the papers' formulas, over 50 steps.
#include "core/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/philox.h"

namespace trireme::optim {
namespace {

constexpr std::uint64_t elements = 2 * tile_elements;
constexpr Range decayed{0, tile_elements};  // the second tile has no weight decay
constexpr double n = 32, weight = 100;      // a micro-batch's weight, and all of them together
constexpr int steps = 50;

double uniform(std::uint64_t stream, std::uint64_t index) {  // in [-1, 1)
  const RandomKey key = random_key(7, Purpose::parameter, stream, 0, 0);
  return 2.0 * static_cast<double>(to_uniform(random_bits(key, index))) - 1.0;
}

// One run through the device's kernels.
struct Training {
  explicit Training(const device::UpdateRule& rule)
      : device(device::make_cpu()),
        optimizer(rule, device, elements),
        ring(device),
        stream(device->compute_stream()),
        parameters(elements),
        gradients(elements),
        squares(tiles_of(elements)) {
    for (std::uint64_t i = 0; i < elements; ++i) parameters[i] = static_cast<float>(uniform(0, i));
  }

  void step(double total_weight = weight) {
    device->kernels().tile_squares(gradients, squares, stream);
    Reduced reduced;
    reduced.gradients = gradients;
    reduced.tile_squares = squares;
    reduced.buffer_checks = buffer_checks;
    reduced.buffer_sums = buffer_sums;
    reduced.buffer_factor = 0.25f;
    reduced.weight = &total_weight;
    reduced.n = n;
    optimizer.update(reduced, parameters, buffers, decayed, ring.on_device(), &norm, stream);
  }

  std::shared_ptr<device::Device> device;
  Optimizer optimizer;
  device::StepBlockRing ring;
  device::Stream stream;
  std::vector<float> parameters, gradients;
  std::vector<double> squares;
  std::vector<float> buffers{1, 2, 3}, buffer_sums{8, 12, 16};
  std::vector<double> buffer_checks{1.0};
  double norm = -1;
};

// The same in f64. Gradients arrive as sums over the batch times 1 ÷ n, so the mean is sum · n ÷ weight.
struct Reference {
  explicit Reference(const device::UpdateRule& r) : rule(r), p(elements), m(elements), v(elements) {
    for (std::uint64_t i = 0; i < elements; ++i) p[i] = static_cast<double>(static_cast<float>(uniform(0, i)));
  }

  void step(const std::vector<float>& arena) {
    std::vector<double> g(elements);
    double sum = 0;
    for (std::uint64_t i = 0; i < elements; ++i) {
      g[i] = static_cast<double>(arena[i]) * n / weight;
      sum += g[i] * g[i];
    }
    norm = std::sqrt(sum);
    if (rule.clip_norm > 0 && norm > rule.clip_norm) {
      for (double& value : g) value *= rule.clip_norm / norm;
    }
    const double lr = learning_rate(rule.schedule, static_cast<std::uint64_t>(t));
    ++t;
    for (std::uint64_t i = 0; i < elements; ++i) {
      const double decay = i < decayed.end ? rule.weight_decay : 0;
      if (rule.kind == device::UpdateRule::Kind::adamw) {
        m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g[i];
        v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g[i] * g[i];
        const double m_hat = m[i] / (1 - std::pow(rule.beta1, t)), v_hat = v[i] / (1 - std::pow(rule.beta2, t));
        p[i] -= lr * (m_hat / (std::sqrt(v_hat) + rule.epsilon) + decay * p[i]);
      } else {
        const double d = g[i] + decay * p[i];
        m[i] = rule.momentum * m[i] + d;
        p[i] -= lr * (rule.nesterov ? d + rule.momentum * m[i] : m[i]);
      }
    }
  }

  device::UpdateRule rule;
  std::vector<double> p, m, v;
  double norm = 0;
  int t = 0;
};

device::UpdateRule sgd(double momentum, bool nesterov) {
  Job::Optimizer job;
  job.kind = "sgd";
  job.lr = 0.05;
  job.momentum = momentum;
  job.nesterov = nesterov;
  job.weight_decay = 0.1;
  return rule_of(job, steps);
}

device::UpdateRule adamw() {
  Job::Optimizer job;
  job.kind = "adamw";
  job.lr = 0.01;
  job.weight_decay = 0.1;
  job.schedule = "cosine";
  job.warmup_steps = 5;
  job.lr_end = 0.001;
  return rule_of(job, steps);
}

struct Case {
  const char* name;
  device::UpdateRule rule;
};

class Updates : public testing::TestWithParam<Case> {};

// Values are of size 1; f32 rounds to 6e-8, in each of 50 steps and a handful of operations: 2e-5 leaves a factor of ten.
TEST_P(Updates, FollowTheReferenceOverFiftySteps) {
  constexpr double tolerance = 2e-5;
  Training run(GetParam().rule);
  Reference reference(GetParam().rule);
  for (int s = 0; s < steps; ++s) {
    for (std::uint64_t i = 0; i < elements; ++i) {
      run.gradients[i] = static_cast<float>(uniform(static_cast<std::uint64_t>(s) + 1, i));
    }
    run.step();
    reference.step(run.gradients);
    ASSERT_NEAR(run.norm / reference.norm, 1.0, 1e-6) << "step " << s;
    for (std::uint64_t i = 0; i < elements; ++i) {
      // Written so that NaN fails.
      ASSERT_TRUE(std::abs(static_cast<double>(run.parameters[i]) - reference.p[i]) <= tolerance)
          << "step " << s << ", element " << i << ": " << run.parameters[i] << " for " << reference.p[i];
    }
  }
  const device::StepBlock block = run.ring.read(run.stream);
  EXPECT_EQ(block.updates, static_cast<std::uint64_t>(steps));
  EXPECT_EQ(block.skips, 0u);
}

Case clipped(const char* name, device::UpdateRule rule) {
  rule.clip_norm = 3.0;  // the norm is √8192 · 0.58 · 0.32 ≈ 17
  return {name, rule};
}

INSTANTIATE_TEST_SUITE_P(Rules, Updates,
                         testing::Values(Case{"sgd", sgd(0, false)}, Case{"momentum", sgd(0.9, false)},
                                         Case{"nesterov", sgd(0.9, true)}, Case{"adamw", adamw()},
                                         clipped("momentum_clipped", sgd(0.9, false)),
                                         clipped("adamw_clipped", adamw())),
                         [](const auto& one) { return one.param.name; });

// Whatever is not finite, all stays as it was, down to the last bit; later steps are skipped too.
void expect_untouched_and_halted(Training& run, const Training& before) {
  EXPECT_EQ(run.parameters, before.parameters);
  EXPECT_EQ(run.buffers, before.buffers);
  for (const float value : run.optimizer.moment1()) ASSERT_EQ(value, 0.0f);
  for (const float value : run.optimizer.moment2()) ASSERT_EQ(value, 0.0f);
  const device::StepBlock block = run.ring.read(run.stream);
  EXPECT_EQ(block.updates, 0u);
  EXPECT_EQ(block.halted, 1u);
  EXPECT_EQ(block.beta1_product, 1.0);
}

TEST(Skips, NonFiniteGradientHalts) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Training run(adamw());
    const Training before(adamw());
    run.gradients.assign(elements, 0.5f);
    run.gradients[elements - 1] = bad;
    run.step();
    expect_untouched_and_halted(run, before);
    run.gradients[elements - 1] = 0.5f;
    run.step();
    expect_untouched_and_halted(run, before);
    EXPECT_EQ(run.ring.read(run.stream).skips, 2u);
  }
}

TEST(Skips, NonFiniteBufferHalts) {
  Training run(adamw());
  const Training before(adamw());
  run.gradients.assign(elements, 0.5f);
  run.buffer_checks[0] = std::numeric_limits<double>::quiet_NaN();
  run.step();
  expect_untouched_and_halted(run, before);
}

TEST(Skips, WeightZeroIsOneSkippedStep) {
  Training run(adamw());
  const Training before(adamw());
  run.gradients.assign(elements, 0.0f);
  run.step(0.0);
  EXPECT_EQ(run.parameters, before.parameters);
  EXPECT_EQ(run.buffers, before.buffers);
  device::StepBlock block = run.ring.read(run.stream);
  EXPECT_EQ(block.skips, 1u);
  EXPECT_EQ(block.halted, 0u);
  run.gradients.assign(elements, 0.5f);
  run.step();
  block = run.ring.read(run.stream);
  EXPECT_EQ(block.updates, 1u);
  EXPECT_NE(run.parameters, before.parameters);
  EXPECT_EQ(run.buffers, (std::vector<float>{2, 3, 4}));  // sums ÷ 4
}

TEST(Rule, MomentsOnlyWhereTheRuleHasThem) {
  const auto device = device::make_cpu();
  const Optimizer plain(sgd(0, false), device, elements), with_momentum(sgd(0.9, false), device, elements),
      adam(adamw(), device, elements);
  EXPECT_EQ(plain.moment1().size(), 0u);
  EXPECT_EQ(with_momentum.moment1().size(), elements);
  EXPECT_EQ(with_momentum.moment2().size(), 0u);
  EXPECT_EQ(adam.moment1().size(), elements);
  EXPECT_EQ(adam.moment2().size(), elements);
}

TEST(Rule, LearningRateOfEachPart) {
  const device::Schedule schedule{.lr = 0.4, .lr_end = 0.1, .warmup = 4, .total = 14};
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.1);  // (u + 1) ÷ warmup · lr
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 4), 0.4);     // the cosine starts at lr
  EXPECT_NEAR(learning_rate(schedule, 9), 0.25, 1e-15);  // half way
  EXPECT_NEAR(learning_rate(schedule, 6), 0.1 + 0.15 * (1 + std::cos(std::numbers::pi * 0.2)), 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 14), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1000), 0.1);
  const device::Schedule constant{.lr = 0.4, .lr_end = 0.1, .warmup = 2, .total = 0};
  EXPECT_DOUBLE_EQ(learning_rate(constant, 0), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(constant, 100000), 0.4);
}

TEST(Rule, WarmupLongerThanTheRunOnlyWarmsUp) {
  Job::Optimizer job;
  job.lr = 1.0;
  job.schedule = "cosine";
  job.warmup_steps = 50;
  testing::internal::CaptureStderr();
  const device::UpdateRule rule = rule_of(job, 20);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("optimizer.warmup_steps = 50: the run has 20 steps"),
            std::string::npos);
  EXPECT_DOUBLE_EQ(learning_rate(rule.schedule, 19), 0.4);
}

}  // namespace
}  // namespace trireme::optim
