// Values of a sample that no training survives. Private to io/feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/dtype.h"

namespace trireme::io {

// Index of the first NaN or Inf of float values; none for other types.
[[nodiscard]] std::optional<std::size_t> first_not_finite(std::span<const std::byte> values, Dtype dtype);

struct BadLabel {
  std::size_t index = 0;
  std::int64_t value = 0;
};
// The first value outside [0, classes) of integers; none for other types.
[[nodiscard]] std::optional<BadLabel> first_bad_label(std::span<const std::byte> values, Dtype dtype,
                                                      std::int64_t classes);

}  // namespace trireme::io
