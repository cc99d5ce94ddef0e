// Names of element types, and the two 16-bit floating-point formats.
#include "core/base/dtype.h"

#include <array>
#include <bit>

namespace trireme {
namespace {

constexpr std::array<std::string_view, 8> names = {"f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool"};

}  // namespace

std::string_view name_of(Dtype type) {
  const auto index = static_cast<std::size_t>(type);
  return index < names.size() ? names[index] : "unknown type";
}

std::optional<Dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t half = 0;
  if (magnitude > 0x7F800000u) {  // NaN: quiet, with the upper payload
    half = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  } else if (magnitude >= 0x477FF000u) {  // 65,520 and above round to 65,536
    half = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14 and above: normal; a carry moves into the exponent
    half = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  } else if (magnitude >= 0x33000000u) {                   // 2^-25 and above: units of 2^-24
    const std::uint32_t shift = 126u - (magnitude >> 23);  // 14 … 24
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t kept = mantissa >> shift, dropped = mantissa & ((1u << shift) - 1u);
    const std::uint32_t tie = 1u << (shift - 1);
    half = kept + (dropped > tie || (dropped == tie && (kept & 1u) != 0) ? 1u : 0u);
  }
  return static_cast<std::uint16_t>(sign | half);
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

}  // namespace trireme
