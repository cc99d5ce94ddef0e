// What shape rules share: checks whose errors name op, input, shapes and types.
#pragma once

#include <initializer_list>
#include <string_view>

#include "core/ops/op.h"

namespace trireme::ops {

// One rule at work. `names` are those of the inputs, in order, and live for ever. Allocates only to throw.
class Rule {
 public:
  // Throws unless there are `fewest` to names.size() inputs.
  Rule(const Inference& inference, std::string_view op, std::span<const std::string_view> names, std::size_t fewest);

  // Input i has one of these types.
  void type(std::size_t i, std::initializer_list<Dtype> allowed) const;
  // Throws "OP: input i (NAME) is TYPE SHAPE, but WHY; inputs: …" unless `fits`.
  void require(bool fits, std::size_t i, std::string_view why) const;
  // The same about an attribute's value: "OP: attribute NAME WHY; inputs: …".
  void attribute(bool fits, std::string_view name, std::string_view why) const;
  [[nodiscard]] const Shape& shape(std::size_t i) const { return inference_.in[i].shape; }
  [[nodiscard]] bool given(std::size_t i) const { return i < inference_.in.count; }

 private:
  [[nodiscard]] std::string inputs() const;
  const Inference& inference_;
  std::string_view op_;
  std::span<const std::string_view> names_;
};

// Common to references.
[[nodiscard]] RefTensor zeros(const Shape& shape);
[[nodiscard]] inline double relu(double value) { return value < 0 ? 0 : value; }  // NaN stays NaN
// Rows of a tensor seen as (rows, last extent).
[[nodiscard]] inline std::int64_t rows_of(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.elements(0, shape.rank() - 1);
}
[[nodiscard]] inline std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace trireme::ops
