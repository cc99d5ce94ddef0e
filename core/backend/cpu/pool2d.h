// Extents of a pooling over channels-last pictures: max_pool2d and avg_pool2d.
#pragma once

#include "core/backend/cpu/kernels.h"

namespace trireme::backend {

struct PoolExtents {
  std::size_t batch, height, width, channels, y_height, y_width, wh, ww, sh, sw;  // window (wh, ww), stride (sh, sw)

  // Where the window of output (b, i, j) begins in x.
  [[nodiscard]] std::size_t x_offset(std::size_t b, std::size_t i, std::size_t j) const {
    return ((b * height + i * sh) * width + j * sw) * channels;
  }
  // No element lies in two windows.
  [[nodiscard]] bool apart() const { return sh >= wh && sw >= ww; }
  // Every element lies in a window (where they are apart).
  [[nodiscard]] bool covers() const { return y_height * wh == height && y_width * ww == width; }
};

[[nodiscard]] inline PoolExtents pool_extents(const Tensor& x, const Tensor& y, const ops::Attributes& attributes) {
  const auto window = attributes.integers("window"), stride = attributes.integers("stride");
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  return {size(x.shape[0]),
          size(x.shape[1]),
          size(x.shape[2]),
          size(x.shape[3]),
          size(y.shape[1]),
          size(y.shape[2]),
          size(window[0]),
          size(window[1]),
          size(stride[0] == 0 ? window[0] : stride[0]),
          size(stride[1] == 0 ? window[1] : stride[1])};
}

}  // namespace trireme::backend
