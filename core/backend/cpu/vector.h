// Eight floats. In a TRIREME_SIMD function they become one AVX register or two SSE ones; loads need no alignment.
// Only for locals: passing one by value would change with the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme::backend {

inline constexpr std::size_t lanes = 8;
using Vec [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
using IntVec [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = std::int32_t;
using ByteVec [[gnu::vector_size(8), gnu::aligned(1), gnu::may_alias]] = std::uint8_t;

[[nodiscard, gnu::always_inline]] inline const Vec& vec(const float* from) {
  return *reinterpret_cast<const Vec*>(from);
}
[[nodiscard, gnu::always_inline]] inline Vec& vec(float* at) { return *reinterpret_cast<Vec*>(at); }

}  // namespace trireme::backend
