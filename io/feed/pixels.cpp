// Leaf loops of transforms.
#include "io/feed/pixels.h"

#include <algorithm>
#include <cstring>

#include "core/base/simd.h"

namespace trireme::io {
namespace {

TRIREME_SIMD void widen_bytes(const std::uint8_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}
TRIREME_SIMD void scale_into(const std::uint8_t* from, float factor, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * factor;
}
TRIREME_SIMD void scale_floats(float* values, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}
TRIREME_SIMD void normalise_period(float* values, const float* mean, const float* inverse, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = (values[i] - mean[i]) * inverse[i];
}

template <class Stored, class Convert>
void convert_all(std::span<const std::byte> from, std::span<float> to, const Convert& convert) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Stored value;
    std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
    to[i] = convert(value);
  }
}

template <class Pixel>
void flip_rows(std::span<const std::byte> from, const Picture& picture, std::span<std::byte> to) {
  for (std::size_t y = 0; y < picture.height; ++y) {
    const std::byte* const row = from.data() + y * picture.width * sizeof(Pixel);
    std::byte* const out = to.data() + y * picture.width * sizeof(Pixel);
    for (std::size_t x = 0; x < picture.width; ++x) {
      std::memcpy(out + x * sizeof(Pixel), row + (picture.width - 1 - x) * sizeof(Pixel), sizeof(Pixel));
    }
  }
}

}  // namespace

void to_floats(std::span<const std::byte> from, Dtype dtype, std::span<float> to) {
  switch (dtype) {
    case Dtype::u8:
    case Dtype::boolean: widen_bytes(reinterpret_cast<const std::uint8_t*>(from.data()), to.data(), to.size()); return;
    case Dtype::f32: std::memcpy(to.data(), from.data(), to.size_bytes()); return;
    case Dtype::f64: convert_all<double>(from, to, [](double v) { return static_cast<float>(v); }); return;
    case Dtype::i64: convert_all<std::int64_t>(from, to, [](std::int64_t v) { return static_cast<float>(v); }); return;
    case Dtype::i32: convert_all<std::int32_t>(from, to, [](std::int32_t v) { return static_cast<float>(v); }); return;
    case Dtype::f16: convert_all<std::uint16_t>(from, to, [](std::uint16_t v) { return from_f16(v); }); return;
    case Dtype::bf16: convert_all<std::uint16_t>(from, to, [](std::uint16_t v) { return from_bf16(v); }); return;
  }
}

void scale_bytes(std::span<const std::uint8_t> from, float factor, std::span<float> to) {
  scale_into(from.data(), factor, to.data(), to.size());
}

void scale(std::span<float> values, float factor) { scale_floats(values.data(), factor, values.size()); }

void normalise(std::span<float> values, std::span<const float> mean, std::span<const float> inverse) {
  for (std::size_t at = 0; at < values.size(); at += mean.size()) {
    normalise_period(values.data() + at, mean.data(), inverse.data(), std::min(mean.size(), values.size() - at));
  }
}

void pad_crop(std::span<const std::byte> from, const Picture& picture, std::size_t pad, std::size_t dy, std::size_t dx,
              std::span<std::byte> to) {
  const std::size_t row_bytes = picture.width * picture.pixel_bytes;
  // Columns [left, right) of the crop lie inside the picture.
  const std::size_t left = std::min(dx < pad ? pad - dx : 0, picture.width);
  const std::size_t right = std::max(left, picture.width - std::min(dx > pad ? dx - pad : 0, picture.width));
  for (std::size_t y = 0; y < picture.height; ++y) {
    std::byte* const out = to.data() + y * row_bytes;
    const std::size_t padded = y + dy;  // row of the padded picture
    if (padded < pad || padded - pad >= picture.height) {
      std::memset(out, 0, row_bytes);
      continue;
    }
    const std::byte* const row = from.data() + (padded - pad) * row_bytes;
    std::memset(out, 0, left * picture.pixel_bytes);
    if (right > left) {
      std::memcpy(out + left * picture.pixel_bytes, row + (left + dx - pad) * picture.pixel_bytes,
                  (right - left) * picture.pixel_bytes);
    }
    std::memset(out + right * picture.pixel_bytes, 0, (picture.width - right) * picture.pixel_bytes);
  }
}

void flip(std::span<const std::byte> from, const Picture& picture, std::span<std::byte> to) {
  if (picture.pixel_bytes == 1) {
    flip_rows<std::uint8_t>(from, picture, to);
  } else if (picture.pixel_bytes == sizeof(float)) {
    flip_rows<float>(from, picture, to);
  } else {
    const std::size_t row_bytes = picture.width * picture.pixel_bytes;
    for (std::size_t y = 0; y < picture.height; ++y) {
      for (std::size_t x = 0; x < picture.width; ++x) {
        std::memcpy(to.data() + y * row_bytes + x * picture.pixel_bytes,
                    from.data() + y * row_bytes + (picture.width - 1 - x) * picture.pixel_bytes, picture.pixel_bytes);
      }
    }
  }
}

}  // namespace trireme::io
