// Element types: names, sizes, and every 16-bit pattern through both conversions.
#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace trireme {
namespace {

TEST(Dtype, NamesAndSizes) {
  const std::pair<const char*, std::size_t> expected[] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2},
                                                          {"i64", 8}, {"i32", 4}, {"u8", 1},  {"bool", 1}};
  for (int i = 0; i < 8; ++i) {
    const auto type = static_cast<Dtype>(i);
    EXPECT_EQ(name_of(type), expected[i].first);
    EXPECT_EQ(size_of(type), expected[i].second);
    EXPECT_EQ(dtype_named(expected[i].first), type);
    EXPECT_EQ(is_floating(type), i < 4);
  }
  EXPECT_FALSE(dtype_named("float"));
}

// Value of a 16-bit pattern from its definition: (-1)^s · 2^(e - bias) · (1 + m ÷ 2^bits), in f64, exact.
double value_of(unsigned pattern, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(pattern >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double mantissa = static_cast<double>(pattern & ((1u << mantissa_bits) - 1u));
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  const double sign = (pattern & 0x8000u) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

// All 65,536 patterns: the value is that of the definition, and converting back gives the pattern.
void check_all(float (*from)(std::uint16_t), std::uint16_t (*to)(float), int exponent_bits, int mantissa_bits) {
  for (unsigned pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double expected = value_of(pattern, exponent_bits, mantissa_bits);
    const float value = from(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(std::isnan(from(to(value)))) << pattern;
      ASSERT_EQ(to(value) & 0x8000u, pattern & 0x8000u) << pattern;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << pattern;
      ASSERT_EQ(to(value), bits) << pattern;
    }
  }
}

TEST(Bf16, EveryPattern) { check_all(from_bf16, to_bf16, 8, 7); }
TEST(F16, EveryPattern) { check_all(from_f16, to_f16, 5, 10); }

// Between each two neighbours of the positive finite numbers: below the middle rounds down, the middle to the
// even one, above it up. The middle is exact in f32.
void check_rounding(float (*from)(std::uint16_t), std::uint16_t (*to)(float), unsigned largest) {
  for (unsigned pattern = 0; pattern < largest; ++pattern) {
    const auto low = static_cast<std::uint16_t>(pattern), high = static_cast<std::uint16_t>(pattern + 1);
    const auto middle = static_cast<float>((static_cast<double>(from(low)) + static_cast<double>(from(high))) / 2);
    const std::uint16_t even = (pattern & 1u) == 0 ? low : high;
    ASSERT_EQ(to(middle), even) << pattern;
    ASSERT_EQ(to(-middle), even | 0x8000u) << pattern;
    ASSERT_EQ(to(std::nextafterf(middle, 0)), low) << pattern;
    ASSERT_EQ(to(std::nextafterf(middle, HUGE_VALF)), high) << pattern;
  }
}

TEST(Bf16, RoundsToNearestEven) { check_rounding(from_bf16, to_bf16, 0x7F7F); }
TEST(F16, RoundsToNearestEven) { check_rounding(from_f16, to_f16, 0x7BFF); }

TEST(F16, BeyondTheLargestIsInfinity) {
  EXPECT_EQ(to_f16(65504.0f), 0x7BFF);
  EXPECT_EQ(to_f16(std::nextafterf(65520.0f, 0)), 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(to_f16(-1e30f), 0xFC00);
  EXPECT_EQ(to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16, BeyondTheLargestIsInfinity) {
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::max()), 0xFF80);
}

TEST(Bf16, ANanWhosePayloadIsCutOffStaysNan) {
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(from_f16(to_f16(std::bit_cast<float>(0x7F800001u)))));
}

}  // namespace
}  // namespace trireme
