// Transforms against closed forms, their types and shapes, and what is refused.
#include "io/feed/transform.h"

#include <cmath>
#include <numeric>

#include "tests/hdf5/values.h"

namespace trireme::io {
namespace {

using test::expect_error;
using test::values_of;

const std::vector<Field> stored = {{"image", Shape({4, 5}), Dtype::u8},
                                   {"rgb", Shape({2, 3, 3}), Dtype::f32},
                                   {"label", Shape(), Dtype::i64},
                                   {"wide", Shape({4}), Dtype::f64}};

Transforms make(const std::vector<std::string>& lines, bool random = true) { return {lines, stored, 9, random}; }

template <class Out, class In>
std::vector<Out> apply(const Transforms& transforms, std::size_t field, const std::vector<In>& values,
                       std::uint64_t position = 0) {
  const Field& out = transforms.fields()[field];
  std::vector<std::byte> bytes(static_cast<std::size_t>(out.shape.elements()) * size_of(out.dtype));
  transforms.apply(field, position, std::as_bytes(std::span(values)), bytes);
  return values_of<Out>(bytes);
}

std::vector<std::uint8_t> all_bytes(std::size_t count, std::uint8_t first) {
  std::vector<std::uint8_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(Transform, WithoutLinesBytesPassUntouched) {
  const Transforms transforms = make({});
  for (std::size_t i = 0; i < stored.size(); ++i) EXPECT_EQ(transforms.fields()[i], stored[i]);
  EXPECT_EQ(apply<std::uint8_t>(transforms, 0, all_bytes(20, 200)), all_bytes(20, 200));
  EXPECT_EQ(apply<std::int64_t>(transforms, 2, std::vector<std::int64_t>{-7}), (std::vector<std::int64_t>{-7}));
}

TEST(Transform, ScaleIsOneProductInF32) {
  for (const char* line : {"image: scale 1/255", " image:scale  0.00392156862745098"}) {
    const Transforms transforms = make({line});
    EXPECT_EQ(transforms.fields()[0], (Field{"image", Shape({4, 5}), Dtype::f32}));
    const auto got = apply<float>(transforms, 0, all_bytes(20, 236));
    for (std::size_t i = 0; i < 20; ++i)
      EXPECT_EQ(got[i], static_cast<float>(236 + i > 255 ? i - 20 : 236 + i) * static_cast<float>(1.0 / 255));
  }
  EXPECT_EQ(apply<float>(make({"wide: scale -2"}), 3, std::vector<double>{0.1, 1e10, -3, 0}),
            (std::vector<float>{-2 * 0.1f, -2 * 1e10f, 6, 0}));
  EXPECT_EQ(apply<float>(make({"label: scale 1/2"}), 2, std::vector<std::int64_t>{7}), (std::vector<float>{3.5f}));
}

TEST(Transform, NormaliseIsDifferenceTimesInverse) {
  const Transforms one = make({"image: scale 1/255", "image: normalise 0.286 0.353"});
  const auto got = apply<float>(one, 0, all_bytes(20, 0));
  for (std::size_t i = 0; i < 20; ++i) {
    // Two f32 roundings of values near 1 and the two of the constants: 4 · 2^-24 · |x| + a ulp.
    const double exact = (static_cast<double>(i) / 255 - 0.286) / 0.353;
    EXPECT_NEAR(got[i], exact, 5e-7) << i;
    EXPECT_EQ(got[i], (static_cast<float>(i) * static_cast<float>(1.0 / 255) - 0.286f) * static_cast<float>(1 / 0.353));
  }
  std::vector<float> rgb(18);
  std::iota(rgb.begin(), rgb.end(), -4.0f);
  const auto channels = apply<float>(make({"rgb: normalise 1,2,3 0.5,0.25,2"}), 1, rgb);
  const float mean[] = {1, 2, 3}, inverse[] = {2, 4, 0.5};
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(channels[i], (rgb[i] - mean[i % 3]) * inverse[i % 3]) << i;
  const auto mixed = apply<float>(make({"rgb: normalise 0 1,2,4"}), 1, rgb);
  const float divisors[] = {1, 2, 4};
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(mixed[i], rgb[i] / divisors[i % 3]) << i;
}

TEST(Transform, LongSamplesKeepTheirChannels) {
  // Longer than a period of the repeated constants, and no multiple of it.
  const std::vector<Field> fields = {{"x", Shape({101, 3}), Dtype::u8}};
  const std::vector<std::string> lines = {"x: normalise 0,100,200 1,2,4"};
  const Transforms transforms(lines, fields, 1, true);
  const auto got = apply<float>(transforms, 0, all_bytes(303, 0));
  const float mean[] = {0, 100, 200}, inverse[] = {1, 0.5, 0.25};
  for (std::size_t i = 0; i < 303; ++i)
    EXPECT_EQ(got[i], (static_cast<float>(i % 256) - mean[i % 3]) * inverse[i % 3]) << i;
}

TEST(Transform, ToF32TakesEveryType) {
  EXPECT_EQ(apply<float>(make({"image: to f32"}), 0, all_bytes(20, 250))[19], 13.0f);
  EXPECT_EQ(apply<float>(make({"wide: to f32"}), 3, std::vector<double>{0.1, -1, 2, 3}),
            (std::vector<float>{0.1f, -1, 2, 3}));
  for (const auto& [dtype, bits] :
       {std::pair(Dtype::f16, std::uint16_t{0xc200}), std::pair(Dtype::bf16, std::uint16_t{0xc040})}) {
    const std::vector<Field> fields = {{"x", Shape(), dtype}};
    const std::vector<std::string> lines = {"x: to f32"};
    EXPECT_EQ(apply<float>(Transforms(lines, fields, 1, true), 0, std::vector<std::uint16_t>{bits}),
              (std::vector<float>{-3}));
  }
  const std::vector<Field> fields = {{"x", Shape({2}), Dtype::i32}, {"b", Shape({2}), Dtype::boolean}};
  const std::vector<std::string> lines = {"x: to f32", "b: to f32"};
  const Transforms transforms(lines, fields, 1, true);
  EXPECT_EQ(apply<float>(transforms, 0, std::vector<std::int32_t>{-70000, 3}), (std::vector<float>{-70000, 3}));
  EXPECT_EQ(apply<float>(transforms, 1, std::vector<std::uint8_t>{1, 0}), (std::vector<float>{1, 0}));
}

TEST(Transform, WrongLinesNameThemselvesAndWhatIsRight) {
  const auto expect = [](const std::string& line, const std::vector<std::string>& parts) {
    std::vector<std::string> all = parts;
    all.push_back("\"" + line + "\"");
    expect_error(ExitCode::usage, all, [&] { static_cast<void>(make({line})); });
  };
  expect("image scale 1/255", {"FIELD: TRANSFORM"});
  expect("image:", {"FIELD: TRANSFORM"});
  expect("imag: flip", {"no field 'imag'", "did you mean 'image'"});
  expect("zzzzzzzz: flip", {"image, rgb, label, wide"});
  expect("image: scael 1/255", {"unknown transform 'scael'", "did you mean 'scale'"});
  expect("image: solarise", {"unknown transform", "pad-crop N"});
  expect("image: scale", {"0 argument(s)", "scale 1/255"});
  expect("image: scale 1/0", {"division by zero"});
  expect("image: scale nan", {"'nan' is not a number"});
  expect("image: scale 1x", {"'1x' is not a number"});
  expect("image: normalise 0.5", {"1 argument(s)", "normalise MEAN STD"});
  expect("image: normalise 0.5 0", {"standard deviation 0 is not above 0"});
  expect("rgb: normalise 1,2 1", {"2 values", "(2, 3, 3)", "3 channels"});
  expect("image: pad-crop 0", {"0 pixels", "1 to 1024"});
  expect("image: pad-crop 1.5", {"1.5 pixels"});
  expect("wide: flip", {"(H, W) or (H, W, C)", "(4,)"});
  expect("label: pad-crop 2", {"(H, W) or (H, W, C)"});
  expect("image: to u8", {"cannot convert to 'u8'"});
}

}  // namespace
}  // namespace trireme::io
