// Errors of shape rules.
#include "core/ops/rule.h"

#include <algorithm>

#include "core/base/error.h"

namespace trireme::ops {

Rule::Rule(const Inference& inference, std::string_view op, std::span<const std::string_view> names, std::size_t fewest)
    : inference_(inference), op_(op), names_(names) {
  if (inference.in.count >= fewest && inference.in.count <= names.size()) return;
  std::string wanted;
  for (const auto name : names) wanted += (wanted.empty() ? "" : ", ") + std::string(name);
  fail(ExitCode::internal, "{}: {} inputs given, {} to {} wanted ({})", op, inference.in.count, fewest, names.size(),
       wanted);
}

std::string Rule::inputs() const {
  std::string text;
  for (std::size_t i = 0; i < inference_.in.count; ++i) {
    text += fmt::format("{}{} {} {}", i == 0 ? "" : ", ", names_[i], name_of(inference_.in[i].dtype),
                        inference_.in[i].shape.text());
  }
  return text;
}

void Rule::require(bool fits, std::size_t i, std::string_view why) const {
  if (fits) return;
  fail(ExitCode::internal, "{}: input {} ({}) is {} {}, but {}; inputs: {}", op_, i, names_[i],
       name_of(inference_.in[i].dtype), inference_.in[i].shape.text(), why, inputs());
}

void Rule::type(std::size_t i, std::initializer_list<Dtype> allowed) const {
  if (std::find(allowed.begin(), allowed.end(), inference_.in[i].dtype) != allowed.end()) return;
  std::string known;
  for (const auto dtype : allowed) known += (known.empty() ? "" : ", ") + std::string(name_of(dtype));
  require(false, i, fmt::format("its type must be {}", known));
}

void Rule::attribute(bool fits, std::string_view name, std::string_view why) const {
  if (fits) return;
  fail(ExitCode::internal, "{}: attribute '{}' {}; inputs: {}", op_, name, why, inputs());
}

RefTensor zeros(const Shape& shape) { return {shape, std::vector<double>(index(shape.elements()))}; }

}  // namespace trireme::ops
