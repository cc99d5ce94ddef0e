// sum: of all elements, f64 (1).
#include <array>
#include <numeric>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace sum {

constexpr std::array<std::string_view, 1> names{"x"};

void infer(Inference& inference) {
  const Rule rule(inference, "sum", names, 1);
  rule.type(0, {Dtype::f32});
  rule.require(rule.shape(0).elements() > 0, 0, "it must have an element");
  inference.out.add(Shape{1}, Dtype::f64);
}

void reference(Reference& r) {
  const auto& x = r.in[0].values;
  r.out.push_back({Shape{1}, {std::accumulate(x.begin(), x.end(), 0.0)}});
}

std::vector<Case> cases() {
  return {{"matrix", {{{5, 7}}}, {}},
          {"one", {{{1}}}, {}},
          {"long", {{{3, 7001}}}, {}},
          {"evaluate", {{{4, 4}}}, {}, Mode::evaluate}};
}

}  // namespace sum
}  // namespace

Op sum_op() {
  return {.name = "sum", .attributes = {}, .infer = sum::infer, .reference = sum::reference, .cases = sum::cases};
}

}  // namespace trireme::ops
