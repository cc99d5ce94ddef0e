// Shape rules: what each op refuses, naming op, input, shapes and types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/op.h"

namespace trireme::ops {
namespace {

using ::testing::HasSubstr;

struct Given {
  Shape shape;
  Dtype dtype = Dtype::f32;
};

// The error text of the op's rule for these inputs; empty where it accepts them.
std::string refusal(std::string_view name, std::initializer_list<Given> inputs,
                    std::initializer_list<std::pair<std::string_view, double>> numbers = {}, Mode mode = Mode::train) {
  const Op& op = Registry::get()[Registry::get().find(name, 1)];
  Signature in;
  for (const auto& each : inputs) in.add(each.shape, each.dtype);
  Attributes attributes = op.attributes;
  for (const auto& [key, value] : numbers) attributes.set(key, value);
  Inference inference{in, attributes, mode, {}, {}};
  try {
    op.infer(inference);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::internal);
    return error.what();
  }
  return {};
}

TEST(Rule, LinearNamesBothShapes) {
  EXPECT_EQ(
      refusal("linear", {{{32, 784}}, {{64, 100}}}),
      "linear: input 1 (weight) is f32 (64, 100), but its last extent must be that of x; inputs: x f32 (32, 784), "
      "weight f32 (64, 100)");
  EXPECT_EQ(refusal("linear", {{{32, 784}}, {{64, 784}}, {{63}}}),
            "linear: input 2 (bias) is f32 (63,), but it must be (out), out being the weight's first extent; inputs: x "
            "f32 (32, 784), weight f32 (64, 784), bias f32 (63,)");
  EXPECT_EQ(refusal("linear", {{{32, 784}}, {{64, 784}}}), "");
}

TEST(Rule, LinearNamesTypesAndNumberOfInputs) {
  EXPECT_EQ(
      refusal("linear", {{{32, 784}, Dtype::u8}, {{64, 784}}}),
      "linear: input 0 (x) is u8 (32, 784), but its type must be f32; inputs: x u8 (32, 784), weight f32 (64, 784)");
  EXPECT_EQ(refusal("linear", {{{32, 784}}}), "linear: 1 inputs given, 2 to 3 wanted (x, weight, bias)");
}

TEST(Rule, Conv2d) {
  EXPECT_THAT(refusal("conv2d", {{{8, 28, 28}}, {{32, 3, 3, 1}}}),
              AllOf(HasSubstr("input 0 (x) is f32 (8, 28, 28)"), HasSubstr("(batch, height, width, channels)")));
  EXPECT_THAT(refusal("conv2d", {{{8, 28, 28, 3}}, {{32, 3, 3, 1}}}),
              HasSubstr("input 1 (weight) is f32 (32, 3, 3, 1)"));
  EXPECT_THAT(refusal("conv2d", {{{8, 2, 28, 3}}, {{32, 3, 3, 3}}}), HasSubstr("must not exceed the padded picture"));
}

TEST(Rule, BatchNorm) {
  const Given c{{16}};
  EXPECT_EQ(refusal("batch_norm", {{{8, 16}}, c, c, c, c}), "");
  EXPECT_THAT(refusal("batch_norm", {{{8, 16}}, c, {{15}}, c, c}), HasSubstr("input 2 (shift) is f32 (15,)"));
  EXPECT_THAT(refusal("batch_norm", {{{1, 16}}, c, c, c, c}), HasSubstr("two values or more"));
  EXPECT_EQ(refusal("batch_norm", {{{1, 16}}, c, c, c, c}, {}, Mode::evaluate), "");
}

TEST(Rule, LossAndAccuracyWantOneLabelARow) {
  for (const auto* op : {"softmax_cross_entropy", "accuracy"}) {
    EXPECT_EQ(refusal(op, {{{32, 10}}, {{32}, Dtype::i64}}), "");
    EXPECT_THAT(refusal(op, {{{32, 10}}, {{31}, Dtype::i64}}), HasSubstr("input 1 (labels) is i64 (31,)"));
    EXPECT_THAT(refusal(op, {{{32, 10}}, {{32}, Dtype::f32}}), HasSubstr("its type must be i64, i32, u8"));
  }
}

TEST(Rule, AttributesOutOfRange) {
  EXPECT_EQ(refusal("dropout", {{{4}}}, {{"p", 1}}), "dropout: attribute 'p' must lie in [0, 1); inputs: x f32 (4,)");
  EXPECT_THAT(refusal("flatten", {{{4, 2}}}, {{"first", 2}}), HasSubstr("attribute 'first'"));
  EXPECT_THAT(refusal("softmax_cross_entropy", {{{32, 10}}, {{32}, Dtype::i64}}, {{"smoothing", -0.1}}),
              HasSubstr("attribute 'smoothing' must lie in [0, 1)"));
}

TEST(Rule, ReshapeKeepsTheNumberOfElements) {
  const Op& op = Registry::get()[Registry::get().find("reshape", 1)];
  const auto reshaped = [&](std::initializer_list<std::int64_t> shape) -> std::string {
    Signature in;
    in.add(Shape{4, 6}, Dtype::f32);
    Attributes attributes = op.attributes;
    attributes.set("shape", std::span(shape.begin(), shape.size()));
    Inference inference{in, attributes, Mode::train, {}, {}};
    try {
      op.infer(inference);
      return inference.out[0].shape.text();
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(reshaped({2, -1}), "(2, 12)");
  EXPECT_EQ(reshaped({24}), "(24,)");
  for (const std::initializer_list<std::int64_t> bad :
       {std::initializer_list<std::int64_t>{5, -1}, {4, 5}, {-1, -1}, {-2, 12}, {1 << 30, 1 << 30}, {}}) {
    EXPECT_THAT(reshaped(bad), AllOf(HasSubstr("reshape: attribute 'shape'"), HasSubstr("x f32 (4, 6)")));
  }
}

TEST(Rule, ElementwiseTakesEqualShapesOrARow) {
  for (const auto* op : {"add", "mul"}) {
    EXPECT_EQ(refusal(op, {{{4, 6}}, {{6}}}), "");
    EXPECT_THAT(refusal(op, {{{4, 6}}, {{4}}}), HasSubstr("input 1 (b) is f32 (4,)"));
    EXPECT_THAT(refusal(op, {{{6}}, {{4, 6}}}), HasSubstr("input 1 (b) is f32 (4, 6)"));
  }
}

}  // namespace
}  // namespace trireme::ops
