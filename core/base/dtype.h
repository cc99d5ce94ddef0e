// Element types. Values agree with trireme_dtype of abi.h (checked in core/plugin).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme {

enum class Dtype : std::int32_t { f64 = 0, f32, f16, bf16, i64, i32, u8, boolean };

[[nodiscard]] constexpr std::size_t size_of(Dtype type) {
  switch (type) {
    case Dtype::f64:
    case Dtype::i64: return 8;
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::u8:
    case Dtype::boolean: return 1;
  }
  return 0;
}
[[nodiscard]] std::string_view name_of(Dtype type);  // "f32", …, "bool"
[[nodiscard]] std::optional<Dtype> dtype_named(std::string_view name);
[[nodiscard]] constexpr bool is_floating(Dtype type) { return type <= Dtype::bf16; }

// Round to nearest even; NaN stays NaN.
[[nodiscard]] std::uint16_t to_bf16(float value);
[[nodiscard]] float from_bf16(std::uint16_t bits);
[[nodiscard]] std::uint16_t to_f16(float value);  // beyond 65,504: infinity
[[nodiscard]] float from_f16(std::uint16_t bits);

}  // namespace trireme
