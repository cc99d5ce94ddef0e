// Every case of every op on every backend. A new op needs nothing here: its cases() come along.
//
// - Outputs agree with the op's f64 reference. Both sides start from the same f32 inputs; the tolerance is the case's
//   (2e-5 of the largest reference value unless it says why: a hundred f32 roundings, 6e-8 each, of sums of some
//   hundred terms, with room for their order).
// - Gradients of a random weighted sum of the outputs agree with central differences of the reference in f64. With a
//   step of 1e-6 these are good to about 1e-8 (rounding 1e-16 · |sum| ÷ step), so the tolerance stays that of f32.
// - A gradient does not depend on which others are wanted; a run repeats bit by bit, and outside oneDNN on any number
//   of threads; NaN in gives NaN out exactly where the reference has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/threads.h"
#include "tests/ops/harness.h"

namespace trireme::ops::testing {
namespace {

struct Parameter {
  std::size_t backend;
  std::uint32_t op;
  std::size_t test;
};

bool trains(const Op& op, const Case& test) { return op.differentiable && test.mode == Mode::train; }

std::vector<Parameter> all_cases(bool with_gradient_only) {
  std::vector<Parameter> all;
  for (std::size_t backend = 0; backend < backends().size(); ++backend) {
    for (std::uint32_t op = 0; op < Registry::get().all().size(); ++op) {
      if (backends()[backend].backend().kernels(op).forward == nullptr) continue;  // not on this backend
      const auto cases = Registry::get()[op].cases();
      for (std::size_t test = 0; test < cases.size(); ++test) {
        if (!with_gradient_only || trains(Registry::get()[op], cases[test])) all.push_back({backend, op, test});
      }
    }
  }
  return all;
}

std::string name_of_case(const ::testing::TestParamInfo<Parameter>& info) {
  const Op& op = Registry::get()[info.param.op];
  return std::string(backends()[info.param.backend].name) + "_" + std::string(op.name) + "_" +
         op.cases()[info.param.test].name;
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// Bit by bit, so that NaN equals NaN.
bool same(const Values& a, const Values& b) {
  return a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0;
}

class OpCase : public ::testing::TestWithParam<Parameter> {
 protected:
  OpCase()
      : op_(Registry::get()[GetParam().op]),
        test_(op_.cases()[GetParam().test]),
        attributes_(attributes_of(op_, test_)),
        random_(1000 * GetParam().op + GetParam().test),
        in_(draw(test_, random_)) {}
  ~OpCase() override { set_compute_threads(1); }

  [[nodiscard]] Application application(const std::vector<Values>& in) const {
    return {backends()[GetParam().backend], GetParam().op, attributes_, test_.mode, in};
  }
  [[nodiscard]] bool gives_gradient(std::size_t output) const { return (op_.gives_gradient >> output & 1) != 0; }
  [[nodiscard]] std::uint32_t wanted() const { return differentiable_inputs(op_, in_.size()); }

  // Random weights for each output that gradients flow through: the gradient that comes in.
  [[nodiscard]] std::vector<std::optional<Values>> draw_gradients(const std::vector<Values>& out) {
    std::vector<std::optional<Values>> gradients;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!gives_gradient(i)) {
        gradients.emplace_back();
        continue;
      }
      Values weights = out[i];
      for (double& value : weights.values) {
        value = static_cast<float>(std::uniform_real_distribution<double>(-1, 1)(random_));
      }
      gradients.emplace_back(std::move(weights));
    }
    return gradients;
  }

  [[nodiscard]] double weighted_sum(const std::vector<std::optional<Values>>& weights,
                                    const std::vector<Values>& in) const {
    const auto out = reference(op_, attributes_, test_.mode, in);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!weights[i]) continue;
      for (std::size_t k = 0; k < out[i].values.size(); ++k) sum += weights[i]->values[k] * out[i].values[k];
    }
    return sum;
  }

  // All elements of small inputs; of larger ones the first, the last and 46 between.
  [[nodiscard]] std::vector<std::size_t> elements_to_check(std::size_t count) {
    std::vector<std::size_t> chosen;
    if (count <= 48) {
      for (std::size_t i = 0; i < count; ++i) chosen.push_back(i);
      return chosen;
    }
    chosen = {0, count - 1};
    while (chosen.size() < 48) chosen.push_back(random_() % count);
    return chosen;
  }

  const Op& op_;
  const Case test_;
  const Attributes attributes_;
  std::mt19937_64 random_;
  const std::vector<Values> in_;
};

class OpGradient : public OpCase {};

TEST_P(OpCase, OutputsAgreeWithReference) {
  const auto expected = reference(op_, attributes_, test_.mode, in_);
  const auto out = application(in_).forward();
  ASSERT_EQ(out.size(), expected.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i].shape, expected[i].shape) << "output " << i;
    const double tolerance = test_.tolerance * largest(expected[i].values);
    for (std::size_t k = 0; k < out[i].values.size(); ++k) {
      // Written so that NaN fails.
      ASSERT_TRUE(std::abs(out[i].values[k] - expected[i].values[k]) <= tolerance)
          << "output " << i << ", element " << k << ": " << out[i].values[k] << ", reference " << expected[i].values[k]
          << ", tolerance " << tolerance;
    }
  }
}

TEST_P(OpGradient, AgreesWithDifferences) {
  constexpr double step = 1e-6;
  auto run = application(in_);
  const auto weights = draw_gradients(run.forward());
  const auto gradients = run.backward(weights, wanted());
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if ((wanted() >> i & 1) == 0) continue;
    const auto chosen = elements_to_check(in_[i].values.size());
    std::vector<double> expected;
    for (const std::size_t k : chosen) {
      auto above = in_, below = in_;
      above[i].values[k] += step;
      below[i].values[k] -= step;
      expected.push_back((weighted_sum(weights, above) - weighted_sum(weights, below)) / (2 * step));
    }
    // 1e-7: the error of the differences themselves, for gradients that are 0 or nearly.
    const double tolerance = test_.tolerance * largest(expected) + 1e-7;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const double gradient = gradients[i]->values[chosen[k]];
      ASSERT_TRUE(std::abs(gradient - expected[k]) <= tolerance)
          << "input " << i << ", element " << chosen[k] << ": " << gradient << ", difference quotient " << expected[k]
          << ", tolerance " << tolerance;
    }
    for (const double value : gradients[i]->values) {
      ASSERT_TRUE(std::isfinite(value)) << "input " << i << ": an element was not written";
    }
  }
}

TEST_P(OpGradient, AloneIsTheSame) {
  auto run = application(in_);
  const auto weights = draw_gradients(run.forward());
  const auto all = run.backward(weights, wanted());
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if ((wanted() >> i & 1) == 0) continue;
    const auto alone = run.backward(weights, 1u << i);
    EXPECT_TRUE(same(*alone[i], *all[i])) << "input " << i;
  }
  EXPECT_NO_THROW((void)run.backward(weights, 0));
}

TEST_P(OpCase, RepeatsBitByBit) {
  // oneDNN cuts its sums by threads; all our own kernels don't.
  const bool ours = op_.name != "linear" && op_.name != "conv2d";
  std::vector<Values> first_out;
  std::vector<std::optional<Values>> weights, first_gradients;
  for (const int threads : {2, 2, 1, 3}) {
    if (threads != 2 && !ours) break;
    set_compute_threads(threads);
    auto run = application(in_);
    const auto out = run.forward();
    if (first_out.empty()) first_out = out, weights = draw_gradients(out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(same(out[i], first_out[i])) << "output " << i << " with " << threads << " threads";
    }
    if (!trains(op_, test_)) continue;
    const auto gradients = run.backward(weights, wanted());
    if (first_gradients.empty()) first_gradients = gradients;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (!gradients[i]) continue;
      EXPECT_TRUE(same(*gradients[i], *first_gradients[i])) << "input " << i << " with " << threads << " threads";
    }
  }
}

TEST_P(OpCase, NanComesOut) {
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (!is_floating(in_[i].dtype) || in_[i].values.empty()) continue;
    for (const std::size_t k : {std::size_t{0}, in_[i].values.size() / 2, in_[i].values.size() - 1}) {
      auto poisoned = in_;
      poisoned[i].values[k] = std::nan("");
      const auto expected = reference(op_, attributes_, test_.mode, poisoned);
      const auto out = application(poisoned).forward();
      for (std::size_t o = 0; o < out.size(); ++o) {
        for (std::size_t e = 0; e < out[o].values.size(); ++e) {
          ASSERT_EQ(std::isnan(out[o].values[e]), std::isnan(expected[o].values[e]))
              << "NaN in element " << k << " of input " << i << ": output " << o << ", element " << e << " is "
              << out[o].values[e] << ", reference " << expected[o].values[e];
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpCase, ::testing::ValuesIn(all_cases(false)), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, OpGradient, ::testing::ValuesIn(all_cases(true)), name_of_case);

}  // namespace
}  // namespace trireme::ops::testing
