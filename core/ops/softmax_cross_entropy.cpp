// softmax_cross_entropy: logits (…, C), labels (…) → sum and weight, both f64 (1). A row's loss is −Σ t·log softmax(x),
// t = (1 − smoothing) at the label plus smoothing ÷ C everywhere; rows labelled ignore_index count in neither.
// Gradient of the sum alone.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace softmax_cross_entropy {

constexpr std::array<std::string_view, 2> names{"logits", "labels"};

void infer(Inference& inference) {
  const Rule rule(inference, "softmax_cross_entropy", names, 2);
  rule.type(0, {Dtype::f32});
  rule.type(1, {Dtype::i64, Dtype::i32, Dtype::u8});
  const Shape &logits = rule.shape(0), &labels = rule.shape(1);
  rule.require(logits.rank() >= 1 && logits[-1] >= 1, 0, "it must be (…, classes)");
  const auto rows = logits.dims().first(index(logits.rank() - 1));
  rule.require(labels == Shape(rows), 1, "it must be the shape of logits without the last extent");
  const double smoothing = inference.attributes.number("smoothing");
  rule.attribute(smoothing >= 0 && smoothing < 1, "smoothing", "must lie in [0, 1)");
  inference.out.add(Shape{1}, Dtype::f64);
  inference.out.add(Shape{1}, Dtype::f64);
  std::array<std::int64_t, Shape::max_rank> saved{};  // of each row: its largest logit m, log Σ exp(x − m)
  std::copy(rows.begin(), rows.end(), saved.begin());
  saved[rows.size()] = 2;
  inference.saved.add(Shape(std::span<const std::int64_t>(saved.data(), rows.size() + 1)), Dtype::f32);
}

void reference(Reference& r) {
  const auto &logits = r.in[0], &labels = r.in[1];
  const std::size_t classes = index(logits.shape[-1]);
  const double smoothing = r.attributes.number("smoothing");
  const auto ignored = static_cast<double>(r.attributes.integer("ignore_index"));
  double sum = 0, weight = 0;
  for (std::size_t row = 0; row < labels.values.size(); ++row) {
    if (labels.values[row] == ignored) continue;
    const double* x = logits.values.data() + row * classes;
    double most = x[0], total = 0, mean = 0;
    for (std::size_t c = 0; c < classes; ++c) most = std::max(most, x[c]);
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(x[c] - most), mean += x[c];
    const double log_sum = most + std::log(total);
    mean /= static_cast<double>(classes);
    const double target = x[static_cast<std::size_t>(labels.values[row])];
    sum += (1 - smoothing) * (log_sum - target) + smoothing * (log_sum - mean);
    weight += 1;
  }
  r.out.push_back({Shape{1}, {sum}});
  r.out.push_back({Shape{1}, {weight}});
}

std::vector<Case> cases() {
  const Case::Input ten{.shape = {16, 10}, .low = -4, .high = 4};
  return {
      {"i64", {ten, {{16}, Dtype::i64, 0, 10}}, {}},
      {"i32", {ten, {{16}, Dtype::i32, 0, 10}}, {}},
      {"u8", {ten, {{16}, Dtype::u8, 0, 10}}, {}},
      {"ignored", {ten, {{16}, Dtype::i64, 0, 10}}, {{"ignore_index", {3}}}},
      {"all_ignored", {ten, {{16}, Dtype::i64, 3, 4}}, {{"ignore_index", {3}}}},
      {"smoothing", {ten, {{16}, Dtype::i64, 0, 10}}, {{"smoothing", {0.1}}}},
      {"large_logits", {{{4, 5}, Dtype::f32, -200, 200}, {{4}, Dtype::u8, 0, 5}}, {}},
      {"sequence", {{{3, 7, 33}, Dtype::f32, -2, 2}, {{3, 7}, Dtype::i32, 0, 33}}, {{"smoothing", {0.2}}}},
      {"many_rows", {{{300, 3}}, {{300}, Dtype::u8, 0, 3}}, {}},
      {"many_classes", {{{2, 1000}}, {{2}, Dtype::i32, 0, 1000}}, {}},
      {"one_class", {{{4, 1}}, {{4}, Dtype::u8, 0, 1}}, {}},
      {"evaluate", {ten, {{16}, Dtype::i64, 0, 10}}, {}, Mode::evaluate},
  };
}

}  // namespace softmax_cross_entropy
}  // namespace

Op softmax_cross_entropy_op() {
  Op op{.name = "softmax_cross_entropy",
        .inputs = 2,
        .attributes = {},
        .infer = softmax_cross_entropy::infer,
        .reference = softmax_cross_entropy::reference,
        .cases = softmax_cross_entropy::cases};
  op.attributes.declare({.name = "ignore_index", .number = -100});
  op.attributes.declare({.name = "smoothing"});
  op.wants_gradient = 1;
  op.gives_gradient = 1;
  return op;
}

}  // namespace trireme::ops
