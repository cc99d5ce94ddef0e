// Whole models: gradients against finite differences of their own loss, values at the start, evaluation.
#include <gmock/gmock.h>

#include <numeric>

#include "tests/plugin/fixture.h"

namespace trireme::plugin {
namespace {

// Directional derivatives: the gradient's projection on one direction of each parameter against central differences of
// the loss, all with the same dropout mask (a fixed key). The loss is summed in f64 over f32 logits, so its rounding
// (some 1e-7 of it) is small beside a difference of 1e-4 and more.
void check_gradients(Micro& micro, double step, double tolerance) {
  const auto ready = micro.train();
  EXPECT_EQ(ready.size(), micro.model->layout().parameters.size());
  const std::vector<float> gradients = micro.gradients;
  const auto parameters = micro.model->parameters();
  const double n = static_cast<double>(micro.rows);
  std::uint64_t at = 0;
  for (const Parameter& p : micro.model->layout().parameters) {
    SCOPED_TRACE(p.name);
    const RandomKey key = random_key(1, Purpose::shuffle, ++at, 0, 0);
    const std::vector<float> before(parameters.begin() + static_cast<std::ptrdiff_t>(p.range.begin),
                                    parameters.begin() + static_cast<std::ptrdiff_t>(p.range.end));
    std::vector<double> direction(p.range.size());
    double slope = 0, length = 0, size = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      // Half along the gradient, half random, so that the slope is no small difference of large terms.
      const double g = gradients[p.range.begin + i];
      direction[i] = g;
      length += g * g;
      size += double{before[i]} * before[i];
    }
    ASSERT_GT(length, 0) << "the gradient is zero";
    ASSERT_TRUE(std::isfinite(length));
    length = std::sqrt(length);
    double total = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      const double random = 2.0 * double{to_uniform(random_bits(key, i))} - 1;
      direction[i] = direction[i] / length + random / std::sqrt(static_cast<double>(direction.size()));
      total += direction[i] * direction[i];
    }
    for (std::size_t i = 0; i < direction.size(); ++i) {
      direction[i] /= std::sqrt(total);
      slope += direction[i] * gradients[p.range.begin + i] * n;  // of the sum: the seed is 1 ÷ n
    }
    const double h = step * std::max(1.0, std::sqrt(size));
    const auto loss_at = [&](double by) {
      for (std::size_t i = 0; i < direction.size(); ++i) {
        parameters[p.range.begin + i] = static_cast<float>(before[i] + by * direction[i]);
      }
      return micro.loss_sum();
    };
    const double difference = (loss_at(h) - loss_at(-h)) / (2 * h);
    std::copy(before.begin(), before.end(), parameters.begin() + static_cast<std::ptrdiff_t>(p.range.begin));
    EXPECT_NEAR(slope, difference, tolerance * (std::abs(difference) + 1e-2 * n * length));
  }
}

TEST(ModelGradients, ConditionalNetWithDropout) {
  Micro micro("conditional-net", {{"hidden", {std::int64_t{32}, "test"}}}, image_fields(), 16);
  // A few relus bend within the step: an error of first order in it, up to 1 % at 1e-4.
  check_gradients(micro, 1e-4, 2e-2);
}

TEST(ModelGradients, ConvNetWithDropoutAndBatchNorm) {
  const Config narrow{{"width1", {std::int64_t{8}, "test"}},
                      {"width2", {std::int64_t{8}, "test"}},
                      {"hidden", {std::int64_t{16}, "test"}}};
  Micro micro("convnet", narrow, image_fields(Dtype::f32, {28, 28, 1}), 8);
  // Max pooling and relu bend too, over more units.
  check_gradients(micro, 2e-4, 2e-2);
}

TEST(ModelGradients, DropoutFollowsTheKeyAlone) {
  Micro micro("conditional-net", {}, image_fields(), 8);
  const double first = micro.loss_sum();
  EXPECT_EQ(micro.loss_sum(), first);
  micro.block.micro_batch = 1;
  EXPECT_NE(micro.loss_sum(), first);
  micro.block.micro_batch = 0;
  EXPECT_EQ(micro.loss_sum(), first);
  EXPECT_NE(micro.loss_sum(Mode::evaluate), first);  // no dropout
}

TEST(ModelGradients, GradientsAreSeededWithLossScaleOverN) {
  Micro micro("conditional-net", {}, image_fields(), 8);
  micro.train();
  const std::vector<float> once = micro.gradients;
  micro.block.loss_scale = 4;
  micro.train();
  for (std::size_t i = 0; i < once.size(); ++i) ASSERT_EQ(micro.gradients[i], 4 * once[i]);  // exact: a power of two
}

TEST(ModelValues, OfPyTorchsDistribution) {
  Micro micro("conditional-net", {}, image_fields(), 1);
  const auto values = micro.model->parameters();
  const auto moments = [&](const std::string& name, double inputs) {
    SCOPED_TRACE(name);
    const Range range = micro.parameter(name).range;
    const double bound = 1 / std::sqrt(inputs), count = static_cast<double>(range.size());
    double sum = 0, squares = 0;
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      ASSERT_LE(std::abs(values[i]), bound);
      sum += values[i], squares += double{values[i]} * values[i];
    }
    // Mean of `count` uniform numbers in ±bound: deviation bound ÷ √(3·count); of the mean square (bound² ÷ 3):
    // bound² · √(4 ÷ 45 ÷ count). Five deviations: once in two million.
    EXPECT_NEAR(sum / count, 0, 5 * bound / std::sqrt(3 * count));
    EXPECT_NEAR(squares / count, bound * bound / 3, 5 * bound * bound * std::sqrt(4.0 / 45 / count));
  };
  moments("fc1.weight", 784);
  moments("fc1.bias", 784);
  moments("fc2.weight", 128);
  moments("head.weight", 64);
}

TEST(ModelValues, DependOnSeedAndNameAlone) {
  Micro one("conditional-net", {}, image_fields(), 1, 1), again("conditional-net", {}, image_fields(), 1, 1),
      other("conditional-net", {}, image_fields(), 1, 2);
  const auto a = one.model->parameters(), b = again.model->parameters(), c = other.model->parameters();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
  EXPECT_NE(a[0], c[0]);
}

TEST(ModelValues, ConvNetIsTheOneDescribed) {
  Micro micro("convnet", {}, image_fields(), 2);
  const Layout& layout = micro.model->layout();
  std::map<std::string, Shape> shapes;
  std::int64_t total = 0;
  for (const auto& p : layout.parameters) shapes[p.name] = p.shape, total += p.shape.elements();
  EXPECT_EQ(shapes.at("block1.conv1.weight"), (Shape{32, 3, 3, 1}));
  EXPECT_EQ(shapes.at("block1.conv2.weight"), (Shape{32, 3, 3, 32}));
  EXPECT_EQ(shapes.at("block2.conv1.weight"), (Shape{64, 3, 3, 32}));
  EXPECT_EQ(shapes.at("block2.conv2.weight"), (Shape{64, 3, 3, 64}));
  EXPECT_EQ(shapes.at("fc.weight"), (Shape{128, 3136}));
  EXPECT_EQ(shapes.at("head.weight"), (Shape{10, 128}));
  EXPECT_EQ(shapes.count("block1.conv1.bias"), 0u);
  // 288 + 9216 + 18432 + 36864 weights of convolutions, 2·(64 + 128) of norms, the linear layers.
  EXPECT_EQ(total, 288 + 9216 + 18432 + 36864 + 2 * (64 + 128) + 3136 * 128 + 128 + 1280 + 10);
  EXPECT_EQ(layout.buffers.size(), 8u);
  for (const auto& p : layout.parameters) {
    const bool weight = p.name.ends_with(".weight");
    EXPECT_EQ(p.decay, weight) << p.name;
    EXPECT_EQ(p.range.end <= layout.decayed_elements, weight) << p.name;
  }
}

TEST(ModelBuffers, BatchNormWritesNewOnesAndEvaluationUsesThem) {
  Micro micro("convnet", {}, image_fields(), 4);
  const Buffer mean = micro.model->layout().buffers[0], variance = micro.model->layout().buffers[1];
  EXPECT_EQ(mean.name, "block1.norm1.mean");
  const auto buffers = micro.model->buffers();
  EXPECT_EQ(buffers[mean.range.begin], 0);
  EXPECT_EQ(buffers[variance.range.begin], 1);
  micro.train();
  EXPECT_EQ(buffers[mean.range.begin], 0);  // read-only within a step
  for (const auto& buffer : micro.model->layout().buffers) {
    for (std::uint64_t i = buffer.range.begin; i < buffer.range.end; ++i) {
      ASSERT_NE(micro.new_buffers[i], buffers[i]) << buffer.name;
      ASSERT_TRUE(std::isfinite(micro.new_buffers[i]));
    }
  }
  const double before = micro.loss_sum(Mode::evaluate);
  std::copy(micro.new_buffers.begin(), micro.new_buffers.end(), buffers.begin());
  EXPECT_NE(micro.loss_sum(Mode::evaluate), before);
}

TEST(ModelInputs, GreyBytesAreScaled) {
  Micro bytes("convnet", {}, image_fields(Dtype::u8), 3), floats("convnet", {}, image_fields(), 3);
  for (std::size_t i = 0; i < bytes.data[0].span<std::uint8_t>().size(); ++i) {
    const auto grey = static_cast<std::uint8_t>(i % 256);
    bytes.data[0].span<std::uint8_t>()[i] = grey;
    floats.data[0].span<float>()[i] = static_cast<float>(grey) / 255;
  }
  std::copy_n(bytes.data[1].span<std::uint8_t>().begin(), 3, floats.data[1].span<std::uint8_t>().begin());
  // x · (1/255) and x ÷ 255 differ by a rounding of f32.
  EXPECT_NEAR(bytes.loss_sum(Mode::evaluate), floats.loss_sum(Mode::evaluate), 1e-5);
}

TEST(ModelPredict, GivesTheOutputsOfForward) {
  Micro micro("conditional-net", {}, image_fields(), 4);
  micro.forward(Mode::evaluate);
  ASSERT_EQ(micro.model->outputs().size(), 1u);
  const auto logits = micro.model->value(micro.model->outputs()[0].value);
  EXPECT_EQ(logits.shape, (Shape{4, 10}));
  const std::vector<float> wanted(logits.span<float>().begin(), logits.span<float>().end());
  micro.model->reset();
  micro.model->predict(micro.data, &micro.block, micro.stream);
  ASSERT_EQ(micro.model->outputs().size(), 1u);
  EXPECT_EQ(micro.model->outputs()[0].name, "logits");
  const auto predicted = micro.model->value(micro.model->outputs()[0].value).span<float>();
  EXPECT_EQ(std::vector<float>(predicted.begin(), predicted.end()), wanted);
  micro.model->reset();
}

TEST(ModelMetrics, AccuracyCountsRows) {
  Micro micro("conditional-net", {}, image_fields(), 32);
  micro.model->shape_pass(32);
  EXPECT_THAT(micro.model->metric_names(), testing::ElementsAre("accuracy"));
  const Loss loss = micro.forward(Mode::evaluate);
  ASSERT_EQ(micro.model->metrics().size(), 1u);
  EXPECT_EQ(micro.number(micro.model->metrics()[0].weight), 32);
  EXPECT_GE(micro.number(micro.model->metrics()[0].sum), 0);
  EXPECT_LE(micro.number(micro.model->metrics()[0].sum), 32);
  EXPECT_EQ(micro.number(loss.weight), 32);
  EXPECT_EQ(loss.n, 32);
  // An untrained classifier of 10 classes: about log 10 for each row.
  EXPECT_NEAR(micro.number(loss.sum) / 32, std::log(10.0), 0.2);
  micro.model->reset();
}

}  // namespace
}  // namespace trireme::plugin
