// convert: y = x · scale + shift in f32, from any integer type or f32, f64. Pictures travel as u8 and become f32 here.
// No gradient.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace convert {

constexpr std::array<std::string_view, 1> names{"x"};

void infer(Inference& inference) {
  const Rule rule(inference, "convert", names, 1);
  rule.type(0, {Dtype::u8, Dtype::boolean, Dtype::i32, Dtype::i64, Dtype::f32, Dtype::f64});
  inference.out.add(rule.shape(0), Dtype::f32);
}

void reference(Reference& r) {
  const double scale = r.attributes.number("scale"), shift = r.attributes.number("shift");
  RefTensor y = r.in[0];
  for (double& value : y.values) value = value * scale + shift;
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {{"u8", {{{5, 28, 28, 1}, Dtype::u8, 0, 256}}, {{"scale", {1.0 / 255}}}},
          {"u8_shift", {{{5, 33}, Dtype::u8, 0, 256}}, {{"scale", {1.0 / 128}}, {"shift", {-1}}}},
          {"bool", {{{40}, Dtype::boolean, 0, 2}}, {}},
          {"i32", {{{40}, Dtype::i32, -1000, 1000}}, {{"scale", {0.5}}}},
          {"i64", {{{40}, Dtype::i64, -1000, 1000}}, {{"scale", {0.5}}}},
          {"f32", {{{3, 17}}}, {{"scale", {2}}}},
          {"f64", {{{3, 17}, Dtype::f64}}, {{"scale", {2}}}, Mode::evaluate}};
}

}  // namespace convert
}  // namespace

Op convert_op() {
  Op op{.name = "convert",
        .attributes = {},
        .infer = convert::infer,
        .reference = convert::reference,
        .cases = convert::cases};
  op.attributes.declare({.name = "scale", .number = 1});
  op.attributes.declare({.name = "shift"});
  op.differentiable = false;
  op.wants_gradient = 0;
  op.gives_gradient = 0;
  return op;
}

}  // namespace trireme::ops
