// Loss and accuracy: closed forms, labels out of range, the types of the incoming gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "core/base/error.h"
#include "tests/ops/harness.h"

namespace trireme::ops::testing {
namespace {

using ::testing::HasSubstr;

class Loss : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static Application make(std::string_view name, const std::vector<Values>& in,
                                        double ignore_index = -100) {
    const std::uint32_t op = Registry::get().find(name, 1);
    Attributes attributes = Registry::get()[op].attributes;
    attributes.set("ignore_index", ignore_index);
    return {backends()[GetParam()], op, attributes, Mode::train, in};
  }
};

TEST_P(Loss, EqualLogitsCostTheLogarithmOfTheClasses) {
  const Values logits{{3, 4}, Dtype::f32, std::vector<double>(12, 7.0)}, labels{{3}, Dtype::u8, {0, 3, 1}};
  auto run = make("softmax_cross_entropy", {logits, labels});
  const auto out = run.forward();
  EXPECT_NEAR(out[0].values[0], 3 * std::log(4), 1e-6);  // three f32 logarithms
  EXPECT_EQ(out[1].values[0], 3);
}

TEST_P(Loss, GradientIsSoftmaxMinusOneHotForBothGradientTypes) {
  const Values logits{{1, 2}, Dtype::f32, {0, 0}}, labels{{1}, Dtype::i64, {1}};
  auto run = make("softmax_cross_entropy", {logits, labels});
  (void)run.forward();
  for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
    const auto gradients = run.backward({Values{{1}, dtype, {0.5}}, std::nullopt}, 1);
    EXPECT_NEAR(gradients[0]->values[0], 0.25, 1e-7);
    EXPECT_NEAR(gradients[0]->values[1], -0.25, 1e-7);
  }
}

TEST_P(Loss, HugeLogitsStayFinite) {
  const Values logits{{2, 3}, Dtype::f32, {1e30, 0, -1e30, -1e30, -1e30, -1e30}}, labels{{2}, Dtype::u8, {0, 2}};
  auto run = make("softmax_cross_entropy", {logits, labels});
  EXPECT_NEAR(run.forward()[0].values[0], std::log(3), 1e-6);
  const auto gradients = run.backward({Values{{1}, Dtype::f64, {1}}, std::nullopt}, 1);
  const double third = 1.0 / 3;
  const std::vector<double> expected{0, 0, 0, third, third, third - 1};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(gradients[0]->values[i], expected[i], 1e-6);
}

// More than a warp takes: on CUDA a whole block shares a row, here of an odd length.
TEST_P(Loss, RowsOfManyClassesAgreeWithSumsInF64) {
  constexpr std::size_t rows = 3, classes = 3001;
  Values logits{{rows, classes}, Dtype::f32, {}};
  const Values labels{{rows}, Dtype::i64, {2990, 17, 1500}};
  for (std::size_t i = 0; i < rows * classes; ++i) logits.values.push_back(static_cast<double>(i * 37 % 101) / 32);
  for (std::size_t row = 0; row < rows; row += 2)  // two of three are right
    logits.values[row * classes + static_cast<std::size_t>(labels.values[row])] = 4;
  auto run = make("softmax_cross_entropy", {logits, labels});
  const auto out = run.forward();
  const auto gradients = run.backward({Values{{1}, Dtype::f64, {1}}, std::nullopt}, 1);
  double loss = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const double> x(&logits.values[row * classes], classes);
    double total = 0;
    for (const double value : x) total += std::exp(value);
    const auto label = static_cast<std::size_t>(labels.values[row]);
    loss += std::log(total) - x[label];
    for (std::size_t c = 0; c < classes; ++c)
      ASSERT_NEAR(gradients[0]->values[row * classes + c], std::exp(x[c]) / total - (c == label ? 1 : 0), 1e-6)
          << row << ", " << c;
  }
  EXPECT_NEAR(out[0].values[0], loss, 1e-5 * loss);  // f32 sums of 3,001 terms
  EXPECT_EQ(make("accuracy", {logits, labels}).forward()[0].values[0], 2);
}

TEST_P(Loss, LabelOutOfRangeIsNamed) {
  const Values logits{{3, 4}, Dtype::f32, std::vector<double>(12, 0.5)};
  for (const auto* op : {"softmax_cross_entropy", "accuracy"}) {
    for (const double bad : {4.0, -1.0}) {
      auto run = make(op, {logits, {{3}, Dtype::i32, {0, bad, 1}}});
      try {
        (void)run.forward();
        ADD_FAILURE() << op << " took label " << bad;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_THAT(error.what(), AllOf(HasSubstr(op), HasSubstr("row 1"), HasSubstr(bad < 0 ? "label -1" : "label 4"),
                                        HasSubstr("[0, 4)")));
      }
    }
  }
}

TEST_P(Loss, IgnoredRowsCountNowhereEvenWithNan) {
  const Values logits{{2, 2}, Dtype::f32, {std::nan(""), 0, 0, 0}}, labels{{2}, Dtype::i64, {-100, 1}};
  auto run = make("softmax_cross_entropy", {logits, labels});
  const auto out = run.forward();
  EXPECT_NEAR(out[0].values[0], std::log(2), 1e-6);
  EXPECT_EQ(out[1].values[0], 1);
  const auto gradients = run.backward({Values{{1}, Dtype::f64, {1}}, std::nullopt}, 1);
  EXPECT_EQ(gradients[0]->values[0], 0);
  EXPECT_EQ(gradients[0]->values[1], 0);
}

TEST_P(Loss, AccuracyCountsTheFirstLargest) {
  const Values logits{{4, 3}, Dtype::f32, {1, 1, 0, 1, 1, 0, 0, 0, 5, std::nan(""), 0, 5}};
  const auto out = make("accuracy", {logits, {{4}, Dtype::u8, {0, 1, 2, 2}}}).forward();
  EXPECT_EQ(out[0].values[0], 2);  // the tie goes to class 0, the row with NaN is wrong
  EXPECT_EQ(out[1].values[0], 4);
}

INSTANTIATE_TEST_SUITE_P(All, Loss, ::testing::Range(std::size_t{0}, backends().size()));

}  // namespace
}  // namespace trireme::ops::testing
