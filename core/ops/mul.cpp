// mul: y = a · b, elementwise. b has a's shape, or is (C), C being a's last extent: the same for every row.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace mul {

constexpr std::array<std::string_view, 2> names{"a", "b"};

void infer(Inference& inference) {
  const Rule rule(inference, "mul", names, 2);
  rule.type(0, {Dtype::f32});
  rule.type(1, {Dtype::f32});
  const Shape &a = rule.shape(0), &b = rule.shape(1);
  rule.require(a == b || (b.rank() == 1 && a.rank() > 0 && a[-1] == b[0]), 1,
               "it must have a's shape, or one extent, a's last");
  inference.out.add(a, Dtype::f32);
}

void reference(Reference& r) {
  RefTensor y = r.in[0];
  const auto& b = r.in[1].values;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= b[i % b.size()];
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {{"same", {{{3, 5, 7}}, {{3, 5, 7}}}, {}},
          {"vector", {{{9}}, {{9}}}, {}},
          {"rows", {{{3, 5, 7}}, {{7}}}, {}},
          {"many_rows", {{{700, 40}}, {{40}}}, {}},
          {"one_column", {{{50, 1}}, {{1}}}, {}},
          {"no_columns", {{{3, 0}}, {{0}}}, {}},
          {"evaluate", {{{4, 6}}, {{6}}}, {}, Mode::evaluate}};
}

}  // namespace mul
}  // namespace

Op mul_op() {
  return {.name = "mul",
          .inputs = 2,
          .attributes = {},
          .infer = mul::infer,
          .reference = mul::reference,
          .cases = mul::cases};
}

}  // namespace trireme::ops
