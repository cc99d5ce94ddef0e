// linear: y = x·Wᵀ + b. x (…, in), weight (out, in), bias (out) or none → y (…, out). Attribute relu: y = max(y, 0).
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace linear {

constexpr std::array<std::string_view, 3> names{"x", "weight", "bias"};

void infer(Inference& inference) {
  const Rule rule(inference, "linear", names, 2);
  rule.type(0, {Dtype::f32});
  rule.type(1, {Dtype::f32});
  const Shape &x = rule.shape(0), &weight = rule.shape(1);
  rule.require(x.rank() >= 1, 0, "it must be (…, in)");
  rule.require(weight.rank() == 2, 1, "it must be (out, in)");
  rule.require(weight[1] == x[-1], 1, "its last extent must be that of x");
  if (rule.given(2)) {
    rule.type(2, {Dtype::f32});
    rule.require(rule.shape(2) == Shape{weight[0]}, 2, "it must be (out), out being the weight's first extent");
  }
  std::array<std::int64_t, Shape::max_rank> dims{};
  const auto from = x.dims();
  for (std::size_t i = 0; i < from.size(); ++i) dims[i] = i + 1 < from.size() ? from[i] : weight[0];
  inference.out.add(Shape(std::span<const std::int64_t>(dims.data(), from.size())), Dtype::f32);
}

void reference(Reference& r) {
  const auto &x = r.in[0], &weight = r.in[1];
  const std::size_t in = index(weight.shape[1]), out = index(weight.shape[0]);
  const std::size_t rows = index(rows_of(x.shape));
  const auto dims = x.shape.dims();
  std::vector<std::int64_t> y_dims(dims.begin(), dims.end());
  y_dims.back() = weight.shape[0];
  RefTensor y = zeros(Shape(y_dims));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = r.in.size() > 2 ? r.in[2].values[o] : 0;
      for (std::size_t k = 0; k < in; ++k) sum += x.values[i * in + k] * weight.values[o * in + k];
      y.values[i * out + o] = r.attributes.flag("relu") ? relu(sum) : sum;
    }
  }
  r.out.push_back(std::move(y));
}

std::vector<Case> cases() {
  return {
      {"bias", {{{4, 7}}, {{5, 7}}, {{5}}}, {}},
      {"no_bias", {{{6, 3}}, {{2, 3}}}, {}},
      {"relu", {{{8, 16}}, {{10, 16}}, {{10}}}, {{"relu", {1}}}},
      {"one_row", {{{1, 33}}, {{1, 33}}, {{1}}}, {}},
      {"three_dims", {{{2, 3, 5}}, {{4, 5}}, {{4}}}, {{"relu", {1}}}},
      {"vector", {{{5}}, {{4, 5}}, {{4}}}, {}},
      {"wide", {{{32, 128}}, {{64, 128}}, {{64}}}, {{"relu", {1}}}},
      {"wide_evaluate", {{{32, 128}}, {{64, 128}}, {{64}}}, {{"relu", {1}}}, Mode::evaluate},
  };
}

}  // namespace linear
}  // namespace

Op linear_op() {
  Op op{.name = "linear",
        .inputs = 3,
        .optional = 1,
        .attributes = {},
        .infer = linear::infer,
        .reference = linear::reference,
        .cases = linear::cases};
  op.attributes.declare({.name = "relu"});
  op.joins_relu = true;
  return op;
}

}  // namespace trireme::ops
