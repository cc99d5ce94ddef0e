// flatten: merges the extents from attribute `first` on into one. The result is the same memory.
#include <array>

#include "core/ops/all.h"
#include "core/ops/rule.h"

namespace trireme::ops {
namespace {
namespace flatten {

constexpr std::array<std::string_view, 1> names{"x"};

Shape flattened(const Shape& x, std::int64_t first) {
  std::array<std::int64_t, Shape::max_rank> dims{};
  std::size_t count = 0;
  for (; count < index(first); ++count) dims[count] = x.dims()[count];
  dims[count++] = x.elements(static_cast<int>(first), x.rank());
  return Shape(std::span<const std::int64_t>(dims.data(), count));
}

void infer(Inference& inference) {
  const Rule rule(inference, "flatten", names, 1);
  const std::int64_t first = inference.attributes.integer("first");
  rule.attribute(first >= 0 && first < rule.shape(0).rank(), "first", "must name an extent of x");
  inference.out.add(flattened(rule.shape(0), first), inference.in[0].dtype);
}

void reference(Reference& r) {
  r.out.push_back({flattened(r.in[0].shape, r.attributes.integer("first")), r.in[0].values});
}

std::vector<Case> cases() {
  return {{"image", {{{2, 4, 3, 1}}}, {{"first", {1}}}},
          {"all", {{{2, 5}}}, {{"first", {0}}}},
          {"last", {{{2, 5}}}, {{"first", {1}}}, Mode::evaluate}};
}

}  // namespace flatten
}  // namespace

Op flatten_op() {
  Op op{.name = "flatten",
        .attributes = {},
        .infer = flatten::infer,
        .reference = flatten::reference,
        .cases = flatten::cases};
  op.attributes.declare({.name = "first", .number = 1});
  op.aliases_input = true;
  return op;
}

}  // namespace trireme::ops
