// Attributes of one application, found by name.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/op.h"

namespace trireme::ops {

std::size_t Attributes::find(std::string_view name) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (items_[i].name == name) return i;
  }
  std::string known;
  for (const auto& item : all()) known += (known.empty() ? "" : ", ") + std::string(item.name);
  fail(ExitCode::internal, "{}: no attribute '{}'; it has {}", op_, name, known.empty() ? "none" : known);
}

double Attributes::number(std::string_view name) const { return items_[find(name)].number; }

std::int64_t Attributes::integer(std::string_view name) const {
  const double number = items_[find(name)].number;
  constexpr double exact = 9007199254740992.0;  // 2^53: from there on a double does not say which integer
  if (!(std::abs(number) <= exact) || number != std::trunc(number))
    fail(ExitCode::internal, "{}: attribute '{}' = {} is no integer from -2^53 to 2^53", op_, name, number);
  return static_cast<std::int64_t>(number);
}

std::span<const std::int64_t, 8> Attributes::integers(std::string_view name) const {
  return items_[find(name)].integers;
}

void Attributes::set(std::string_view name, double number) {
  Attribute& item = items_[find(name)];
  if (item.list) fail(ExitCode::internal, "{}: attribute '{}' takes a list of integers, not {}", op_, name, number);
  item.number = number;
}

void Attributes::set(std::string_view name, std::span<const std::int64_t> integers) {
  Attribute& item = items_[find(name)];
  if (!item.list) {
    fail(ExitCode::internal, "{}: attribute '{}' takes a number, not a list of {} integers", op_, name,
         integers.size());
  }
  if (integers.size() > item.integers.size()) {
    fail(ExitCode::internal, "{}: attribute '{}' takes at most {} integers, not {}", op_, name, item.integers.size(),
         integers.size());
  }
  std::fill(std::copy(integers.begin(), integers.end(), item.integers.begin()), item.integers.end(), 0);
}

void Attributes::declare(Attribute item) {
  if (count_ == items_.size()) fail(ExitCode::internal, "attribute '{}': an op has at most {}", item.name, count_);
  items_[count_++] = item;
}

}  // namespace trireme::ops
