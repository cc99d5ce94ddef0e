// The arithmetic of transforms on one sample. No allocation; the same bits on every processor. Private to io/feed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"

namespace trireme::io {

// As f32, rounded to nearest; bool: 0 or 1.
void to_floats(std::span<const std::byte> from, Dtype dtype, std::span<float> to);
// to = from · factor
void scale_bytes(std::span<const std::uint8_t> from, float factor, std::span<float> to);
void scale(std::span<float> values, float factor);
// values[i] = (values[i] − mean[i mod n]) · inverse[i mod n], n = mean.size()
void normalise(std::span<float> values, std::span<const float> mean, std::span<const float> inverse);

// Rows of pixels: a sample (H, W) or (H, W, C) as bytes.
struct Picture {
  std::size_t height = 0, width = 0, pixel_bytes = 0;
};
// to[y][x] = from[y + dy − pad][x + dx − pad], zero outside: a crop of the picture padded by `pad` on each side.
void pad_crop(std::span<const std::byte> from, const Picture& picture, std::size_t pad, std::size_t dy, std::size_t dx,
              std::span<std::byte> to);
// to[y][x] = from[y][width − 1 − x]
void flip(std::span<const std::byte> from, const Picture& picture, std::span<std::byte> to);

}  // namespace trireme::io
