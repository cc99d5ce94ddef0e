// dropout: in training y = x·m ÷ (1 − p), m = 1 with probability 1 − p, else 0; otherwise y = x. Element i is kept
// where number i of the op's random stream is ≥ p, so the mask is recomputed in backward, never stored.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace dropout {

constexpr std::array<std::string_view, 1> names{"x"};

void infer(Inference& inference) {
  const Rule rule(inference, "dropout", names, 1);
  rule.type(0, {Dtype::f32});
  const double p = inference.attributes.number("p");
  rule.attribute(p >= 0 && p < 1, "p", "must lie in [0, 1)");
  inference.out.add(rule.shape(0), Dtype::f32);
}

void reference(Reference& r) {
  const double p = r.attributes.number("p");
  RefTensor y = r.in[0];
  if (r.mode == Mode::train) {
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      y.values[i] *= to_uniform(random_bits(r.key, i)) >= p ? 1 / (1 - p) : 0;
    }
  }
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {{"half", {{{8, 33}}}, {{"p", {0.5}}}},
          {"rare", {{{3, 7001}}}, {{"p", {0.1}}}},
          {"none", {{{5, 3}}}, {{"p", {0}}}},
          {"one", {{{1}}}, {{"p", {0.25}}}},
          {"evaluate", {{{8, 33}}}, {{"p", {0.5}}}, Mode::evaluate},
          {"predict", {{{8, 33}}}, {{"p", {0.5}}}, Mode::predict}};
}

}  // namespace dropout
}  // namespace

Op dropout_op() {
  Op op{.name = "dropout",
        .attributes = {},
        .infer = dropout::infer,
        .reference = dropout::reference,
        .cases = dropout::cases};
  op.attributes.declare({.name = "p", .number = 0.5});
  op.random = true;
  return op;
}

}  // namespace trireme::ops
