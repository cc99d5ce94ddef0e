// accuracy: logits (…, C), labels (…) → how many rows have their (first) largest logit at the label, and how many rows
// count; both f64 (1). Rows labelled ignore_index count in neither; a row with NaN is wrong. No gradient.
#include <array>
#include <cmath>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace accuracy {

constexpr std::array<std::string_view, 2> names{"logits", "labels"};

void infer(Inference& inference) {
  const Rule rule(inference, "accuracy", names, 2);
  rule.type(0, {Dtype::f32});
  rule.type(1, {Dtype::i64, Dtype::i32, Dtype::u8});
  const Shape& logits = rule.shape(0);
  rule.require(logits.rank() >= 1 && logits[-1] >= 1, 0, "it must be (…, classes)");
  rule.require(rule.shape(1) == Shape(logits.dims().first(index(logits.rank() - 1))), 1,
               "it must be the shape of logits without the last extent");
  inference.out.add(Shape{1}, Dtype::f64);
  inference.out.add(Shape{1}, Dtype::f64);
}

void reference(Reference& r) {
  const auto &logits = r.in[0], &labels = r.in[1];
  const std::size_t classes = index(logits.shape[-1]);
  const auto ignored = static_cast<double>(r.attributes.integer("ignore_index"));
  double right = 0, weight = 0;
  for (std::size_t row = 0; row < labels.values.size(); ++row) {
    if (labels.values[row] == ignored) continue;
    const double* x = logits.values.data() + row * classes;
    std::size_t best = 0;
    bool valid = true;
    for (std::size_t c = 0; c < classes; ++c) {
      valid = valid && !std::isnan(x[c]);
      if (x[c] > x[best]) best = c;
    }
    right += valid && static_cast<double>(best) == labels.values[row] ? 1 : 0;
    weight += 1;
  }
  r.out.push_back({Shape{1}, {right}});
  r.out.push_back({Shape{1}, {weight}});
}

std::vector<Case> cases() {
  return {
      {"i64", {{{200, 4}}, {{200}, Dtype::i64, 0, 4}}, {}},
      {"i32", {{{5, 20, 3}}, {{5, 20}, Dtype::i32, 0, 3}}, {}},
      {"u8", {{{100, 10}}, {{100}, Dtype::u8, 0, 10}}, {}},
      {"ties", {{{100, 4}, Dtype::f32, 0, 0}, {{100}, Dtype::u8, 0, 4}}, {}},
      {"ignored", {{{100, 3}}, {{100}, Dtype::i64, 0, 3}}, {{"ignore_index", {1}}}, Mode::evaluate},
  };
}

}  // namespace accuracy
}  // namespace

Op accuracy_op() {
  Op op{.name = "accuracy",
        .inputs = 2,
        .attributes = {},
        .infer = accuracy::infer,
        .reference = accuracy::reference,
        .cases = accuracy::cases};
  op.attributes.declare({.name = "ignore_index", .number = -100});
  op.differentiable = false;
  op.wants_gradient = 0;
  op.gives_gradient = 0;
  return op;
}

}  // namespace trireme::ops
