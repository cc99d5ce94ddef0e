// Checks of values as they are stored.
#include "io/feed/check.h"

#include <cstring>

#include "core/base/simd.h"

namespace trireme::io {
namespace {

// An exponent of all ones marks NaN and Inf in every IEEE format.
TRIREME_SIMD bool any_special32(const std::byte* bytes, std::size_t count) {
  std::uint32_t met = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
    met |= static_cast<std::uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return met != 0;
}

template <class Bits>
std::optional<std::size_t> first_special(std::span<const std::byte> values, Bits exponent) {
  for (std::size_t i = 0; i * sizeof(Bits) < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, values.data() + i * sizeof bits, sizeof bits);
    if ((bits & exponent) == exponent) return i;
  }
  return std::nullopt;
}

template <class Integer>
std::optional<BadLabel> first_outside(std::span<const std::byte> values, std::int64_t classes) {
  for (std::size_t i = 0; i * sizeof(Integer) < values.size(); ++i) {
    Integer value;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    const auto wide = static_cast<std::int64_t>(value);
    if (wide < 0 || wide >= classes) return BadLabel{i, wide};
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> first_not_finite(std::span<const std::byte> values, Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return first_special<std::uint64_t>(values, 0x7ff0000000000000u);
    case Dtype::f32:
      if (!any_special32(values.data(), values.size() / sizeof(float))) return std::nullopt;
      return first_special<std::uint32_t>(values, 0x7f800000u);
    case Dtype::f16: return first_special<std::uint16_t>(values, std::uint16_t{0x7c00});
    case Dtype::bf16: return first_special<std::uint16_t>(values, std::uint16_t{0x7f80});
    default: return std::nullopt;
  }
}

std::optional<BadLabel> first_bad_label(std::span<const std::byte> values, Dtype dtype, std::int64_t classes) {
  switch (dtype) {
    case Dtype::u8: return first_outside<std::uint8_t>(values, classes);
    case Dtype::i32: return first_outside<std::int32_t>(values, classes);
    case Dtype::i64: return first_outside<std::int64_t>(values, classes);
    default: return std::nullopt;
  }
}

}  // namespace trireme::io
