// batch_norm over all but the last extent: x (…, C), scale, shift, running mean, running variance (C each) → y (…, C),
// new running mean, new running variance (C each; no gradient). Training normalises by this micro-batch's statistics
// and moves the running ones by `momentum` (with the unbiased variance); otherwise the running ones are used and
// given on. y = (x − mean) ÷ √(variance + epsilon) · scale + shift; attribute relu: y = max(y, 0).
#include <array>
#include <cmath>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace batch_norm {

constexpr std::array<std::string_view, 5> names{"x", "scale", "shift", "running_mean", "running_variance"};

void infer(Inference& inference) {
  const Rule rule(inference, "batch_norm", names, 5);
  rule.type(0, {Dtype::f32});
  const Shape& x = rule.shape(0);
  rule.require(x.rank() >= 2, 0, "it must be (…, channels) of two extents or more");
  const Shape channels{x[-1]};
  for (std::size_t i = 1; i < names.size(); ++i) {
    rule.type(i, {Dtype::f32});
    rule.require(rule.shape(i) == channels, i, "it must be (channels), as x's last extent");
  }
  rule.attribute(inference.attributes.number("epsilon") > 0, "epsilon", "must be above 0");
  const double momentum = inference.attributes.number("momentum");
  rule.attribute(momentum >= 0 && momentum <= 1, "momentum", "must lie in [0, 1]");
  inference.out.add(x, Dtype::f32);
  inference.out.add(channels, Dtype::f32);
  inference.out.add(channels, Dtype::f32);
  if (inference.mode != Mode::train) return;
  rule.require(rows_of(x) > 1, 0, "a variance needs two values or more of each channel");
  inference.saved.add(channels, Dtype::f32);  // mean
  inference.saved.add(channels, Dtype::f32);  // 1 ÷ √(variance + epsilon)
}

void reference(Reference& r) {
  const auto& x = r.in[0];
  const std::size_t channels = index(x.shape[-1]), rows = index(rows_of(x.shape));
  const double epsilon = r.attributes.number("epsilon"), momentum = r.attributes.number("momentum");
  const auto n = static_cast<double>(rows);
  RefTensor y = zeros(x.shape), new_mean = r.in[3], new_variance = r.in[4];
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = r.in[3].values[c], variance = r.in[4].values[c];
    if (r.mode == Mode::train) {
      mean = variance = 0;
      for (std::size_t i = 0; i < rows; ++i) mean += x.values[i * channels + c] / n;
      for (std::size_t i = 0; i < rows; ++i) variance += std::pow(x.values[i * channels + c] - mean, 2) / n;
      new_mean.values[c] += momentum * (mean - new_mean.values[c]);
      new_variance.values[c] += momentum * (variance * n / (n - 1) - new_variance.values[c]);
    }
    const double factor = r.in[1].values[c] / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < rows; ++i) {
      const double value = (x.values[i * channels + c] - mean) * factor + r.in[2].values[c];
      y.values[i * channels + c] = r.attributes.flag("relu") ? relu(value) : value;
    }
  }
  r.out.push_back(std::move(y));
  r.out.push_back(std::move(new_mean));
  r.out.push_back(std::move(new_variance));
}

// Statistics of `channels` values each; running variances lie above 0.
std::vector<Case::Input> inputs(Shape x, double low = -1, double high = 1) {
  const Shape channels{x[-1]};
  return {{x, Dtype::f32, low, high}, {channels}, {channels}, {channels}, {channels, Dtype::f32, 0.5, 2}};
}

std::vector<Case> cases() {
  return {
      {"matrix", inputs({12, 5}), {}},
      {"image", inputs({3, 4, 4, 8}), {{"relu", {1}}}},
      {"momentum", inputs({9, 16}), {{"momentum", {0.3}}, {"epsilon", {1e-3}}}},
      {"one_channel", inputs({7, 3, 1}), {{"relu", {1}}}},
      {"many_channels", inputs({6, 70}), {}},
      {"many_rows", inputs({8, 30, 30, 3}), {{"relu", {1}}}},
      // f32 holds x = 100 ± 1 to 4e-6, and the normalised value inherits that times 1 ÷ deviation.
      {"far_from_zero", inputs({64, 32}, 99, 101), {}, Mode::train, 1e-4},
      {"evaluate", inputs({3, 4, 4, 8}), {{"relu", {1}}}, Mode::evaluate},
      {"evaluate_row", inputs({1, 9}), {}, Mode::evaluate},
      {"predict", inputs({5, 40}), {}, Mode::predict},
  };
}

}  // namespace batch_norm
}  // namespace

Op batch_norm_op() {
  Op op{.name = "batch_norm",
        .inputs = 5,
        .attributes = {},
        .infer = batch_norm::infer,
        .reference = batch_norm::reference,
        .cases = batch_norm::cases};
  op.attributes.declare({.name = "epsilon", .number = 1e-5});
  op.attributes.declare({.name = "momentum", .number = 0.1});
  op.attributes.declare({.name = "relu"});
  op.wants_gradient = 0b111;
  op.gives_gradient = 1;
  op.joins_relu = true;
  return op;
}

}  // namespace trireme::ops
