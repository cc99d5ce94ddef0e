// Where parameters and buffers lie, and their values at the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/plugin/layout.h"

namespace trireme::plugin {
namespace {

Layout example() {
  Layout layout;
  layout.parameters = {{"a", Shape{100, 50}, Init::uniform, -2, 3, true, {}},
                       {"a.bias", Shape{3}, Init::constant, 0.25, 0, false, {}},
                       {"b", Shape{17}, Init::normal, 1, 0.5, true, {}},
                       {"b.bias", Shape{}, Init::zeros, 0, 0, false, {}}};
  layout.buffers = {{"mean", Shape{20}, Reduce::mean, 0, {}},
                    {"most", Shape{5000}, Reduce::max, -1, {}},
                    {"variance", Shape{20}, Reduce::mean, 1, {}}};
  layout.place();
  return layout;
}

TEST(Layout, DecayedFirstAlignedAndPaddedToTiles) {
  const Layout layout = example();
  EXPECT_EQ(layout.parameters[0].range, (Range{0, 5000}));
  EXPECT_EQ(layout.parameters[2].range, (Range{5008, 5025}));  // 16 elements are 64 B
  EXPECT_EQ(layout.decayed_elements, 8192u);
  EXPECT_EQ(layout.parameters[1].range, (Range{8192, 8195}));
  EXPECT_EQ(layout.parameters[3].range, (Range{8208, 8209}));
  EXPECT_EQ(layout.parameter_elements, 12288u);
  EXPECT_EQ(layout.buffers[0].range, (Range{0, 20}));
  EXPECT_EQ(layout.buffers[2].range, (Range{32, 52}));
  EXPECT_EQ(layout.mean_elements, 4096u);
  EXPECT_EQ(layout.buffers[1].range, (Range{4096, 9096}));
  EXPECT_EQ(layout.buffer_elements, 12288u);
}

TEST(Layout, ValuesDependOnSeedAndNameAlone) {
  const Layout layout = example();
  std::vector<float> values(layout.parameter_elements, 9), buffers(layout.buffer_elements, 9);
  layout.initialise(5, values, buffers);
  Layout turned;
  turned.parameters = {layout.parameters[2], layout.parameters[0]};  // another order, others missing
  turned.place();
  std::vector<float> again(turned.parameter_elements);
  turned.initialise(5, again, {});
  EXPECT_TRUE(std::equal(values.begin(), values.begin() + 5000,
                         again.begin() + static_cast<std::ptrdiff_t>(turned.parameters[1].range.begin)));
  EXPECT_TRUE(std::equal(values.begin() + 5008, values.begin() + 5025, again.begin()));
  std::vector<float> other(turned.parameter_elements);
  turned.initialise(6, other, {});
  EXPECT_NE(other[0], again[0]);

  EXPECT_EQ(values[8192], 0.25f);
  EXPECT_EQ(values[8208], 0);
  for (const std::size_t padding : {5000u, 5007u, 5025u, 8191u, 8195u, 12287u}) EXPECT_EQ(values[padding], 0);
  EXPECT_EQ(buffers[0], 0);
  EXPECT_EQ(buffers[32], 1);
  EXPECT_EQ(buffers[4096], -1);
  EXPECT_EQ(buffers[52], 0);
}

TEST(Layout, MomentsOfUniformAndNormal) {
  Layout layout;
  layout.parameters = {{"uniform", Shape{40000}, Init::uniform, -2, 3, true, {}},
                       {"normal", Shape{40000}, Init::normal, 1, 0.5, true, {}}};
  layout.place();
  std::vector<float> values(layout.parameter_elements);
  layout.initialise(1, values, {});
  const auto moments = [&](const Parameter& p) {
    double mean = 0, variance = 0;
    for (std::uint64_t i = p.range.begin; i < p.range.end; ++i) mean += double{values[i]} / 40000;
    for (std::uint64_t i = p.range.begin; i < p.range.end; ++i)
      variance += std::pow(double{values[i]} - mean, 2) / 40000;
    return std::pair(mean, variance);
  };
  // Five deviations of the mean of 40,000 numbers, √(variance ÷ 40,000) each, and of their variance.
  const auto [uniform_mean, uniform_variance] = moments(layout.parameters[0]);
  EXPECT_NEAR(uniform_mean, 0.5, 5 * std::sqrt(25.0 / 12 / 40000));
  EXPECT_NEAR(uniform_variance, 25.0 / 12, 5 * 25 * std::sqrt(1.0 / 180 / 40000));
  const auto [normal_mean, normal_variance] = moments(layout.parameters[1]);
  EXPECT_NEAR(normal_mean, 1, 5 * 0.5 / std::sqrt(40000.0));
  EXPECT_NEAR(normal_variance, 0.25, 5 * 0.25 * std::sqrt(2.0 / 40000));
  const auto [least, most] = std::minmax_element(values.begin(), values.begin() + 40000);
  EXPECT_GE(*least, -2);
  EXPECT_LT(*most, 3);
}

TEST(Layout, ArenasOfTheWrongSizeAreRefused) {
  const Layout layout = example();
  std::vector<float> values(10);
  EXPECT_THROW(layout.initialise(1, values, {}), Error);
}

}  // namespace
}  // namespace trireme::plugin
