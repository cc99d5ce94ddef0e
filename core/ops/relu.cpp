// relu: y = x where x ≥ 0, else 0; NaN stays NaN. The gradient passes where y > 0.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace relu {

constexpr std::array<std::string_view, 1> names{"x"};

void infer(Inference& inference) {
  const Rule rule(inference, "relu", names, 1);
  rule.type(0, {Dtype::f32});
  inference.out.add(rule.shape(0), Dtype::f32);
}

void reference(Reference& r) {
  RefTensor y = r.in[0];
  for (double& value : y.values) value = ops::relu(value);
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {{"matrix", {{{5, 7}}}, {}},
          {"one", {{{1}}}, {}},
          {"long", {{{3, 7001}}}, {}},
          {"evaluate", {{{4, 4}}}, {}, Mode::evaluate}};
}

}  // namespace relu
}  // namespace

Op relu_op() {
  return {.name = "relu", .attributes = {}, .infer = relu::infer, .reference = relu::reference, .cases = relu::cases};
}

}  // namespace trireme::ops
