// reshape: the same elements under the extents of attribute `shape`, a list that ends at its first 0. One of them may
// be -1: what is left. The result is the same memory.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace reshape {

constexpr std::array<std::string_view, 1> names{"x"};

// The wanted shape; of rank 0 where it does not fit.
Shape reshaped(const Shape& x, std::span<const std::int64_t, 8> wanted) {
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::size_t count = 0, open = dims.size();
  std::int64_t known = 1;
  for (; count < dims.size() && wanted[count] != 0; ++count) {
    dims[count] = wanted[count];
    if (dims[count] > 0) {
      if (dims[count] > x.elements() / known) return {};
      known *= dims[count];
    } else if (dims[count] == -1 && open == dims.size()) {
      open = count;
    } else {
      return {};
    }
  }
  if (open < dims.size()) dims[open] = x.elements() / known, known *= dims[open];
  return known == x.elements() ? Shape(std::span<const std::int64_t>(dims.data(), count)) : Shape();
}

void infer(Inference& inference) {
  const Rule rule(inference, "reshape", names, 1);
  const auto wanted = inference.attributes.integers("shape");
  const Shape shape = reshaped(rule.shape(0), wanted);
  if (shape.rank() == 0) {
    std::string text;
    for (std::size_t i = 0; i < wanted.size() && wanted[i] != 0; ++i) {
      text += (i == 0 ? "" : ", ") + std::to_string(wanted[i]);
    }
    rule.attribute(false, "shape", "(" + text + ") must have as many elements as x (one extent may be -1)");
  }
  inference.out.add(shape, inference.in[0].dtype);
}

void reference(Reference& r) {
  r.out.push_back({reshaped(r.in[0].shape, r.attributes.integers("shape")), r.in[0].values});
}

std::vector<Case> cases() {
  return {{"image", {{{2, 12}}}, {{"shape", {2, 3, 4, 1}}}},
          {"rest", {{{2, 3, 4}}}, {{"shape", {-1, 6}}}},
          {"eight", {{{24}}}, {{"shape", {1, 2, 1, 3, 1, 2, 2, 1}}}},
          {"evaluate", {{{4, 2}}}, {{"shape", {8}}}, Mode::evaluate}};
}

}  // namespace reshape
}  // namespace

Op reshape_op() {
  Op op{.name = "reshape",
        .attributes = {},
        .infer = reshape::infer,
        .reference = reshape::reference,
        .cases = reshape::cases};
  op.attributes.declare({.name = "shape", .list = true});
  op.aliases_input = true;
  return op;
}

}  // namespace trireme::ops
