// Convolutions of real networks: each has a fast implementation (oneDNN's reference code is refused by an error).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/harness.h"

namespace trireme::ops::testing {
namespace {

struct Layer {
  std::int64_t size, in, out, kernel, stride;
};

class Convolution : public ::testing::TestWithParam<Layer> {};

// Weights of one and inputs of one: every output is the number of terms under the kernel, exact in f32; so are the
// gradients for an incoming gradient of one.
TEST_P(Convolution, CountsItsTerms) {
  const auto [size, in, out, kernel, stride] = GetParam();
  const std::uint32_t op = Registry::get().find("conv2d", 1);
  Attributes attributes = Registry::get()[op].attributes;
  const std::int64_t strides[] = {stride, stride}, padding[] = {kernel / 2, kernel / 2};
  attributes.set("stride", strides);
  attributes.set("padding", padding);
  const auto ones = [](const Shape& shape) {
    return Values{shape, Dtype::f32, std::vector<double>(static_cast<std::size_t>(shape.elements()), 1.0)};
  };
  const Values x = ones({2, size, size, in}), weight = ones({out, kernel, kernel, in});
  for (const auto& under_test : backends()) {
    if (under_test.backend().kernels(op).forward == nullptr) continue;
    Application run(under_test, op, attributes, Mode::train, {x, weight});
    const auto expected = reference(Registry::get()[op], attributes, Mode::train, {x, weight});
    const auto y = run.forward();
    ASSERT_EQ(y[0].values, expected[0].values);
    const auto gradients = run.backward({ones(y[0].shape)}, 0b11);
    double in_all = 0, through_x = 0, through_weight = 0;  // each term counts once in y and in either gradient
    for (const double value : y[0].values) in_all += value;
    for (const double value : gradients[0]->values) through_x += value;
    for (const double value : gradients[1]->values) through_weight += value;
    EXPECT_EQ(through_x, in_all);
    EXPECT_EQ(through_weight, in_all);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Convolution,
                         ::testing::Values(Layer{28, 1, 32, 3, 1}, Layer{28, 32, 32, 3, 1}, Layer{14, 32, 64, 3, 1},
                                           Layer{14, 64, 64, 3, 1}, Layer{28, 1, 6, 5, 1}, Layer{10, 6, 16, 5, 1},
                                           Layer{32, 3, 64, 3, 1}, Layer{32, 3, 64, 7, 2}, Layer{16, 64, 128, 3, 2},
                                           Layer{16, 64, 128, 1, 2}, Layer{8, 20, 50, 3, 1}, Layer{9, 3, 1, 3, 1}));

}  // namespace
}  // namespace trireme::ops::testing
