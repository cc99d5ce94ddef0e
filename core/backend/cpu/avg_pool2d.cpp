// avg_pool2d over channels-last pictures.
#include "core/backend/cpu/pool2d.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace avg_pool2d {

// y = share · Σ of the window; `line` floats from one row of the picture to the next.
TRIREME_SIMD void average_window(const float* x, std::size_t line, const PoolExtents& e, float share, float* y) {
  const std::size_t channels = e.channels;
  for (std::size_t c = 0; c < channels; ++c) y[c] = x[c];
  for (std::size_t k = 1; k < e.wh * e.ww; ++k) {
    const float* at = x + k / e.ww * line + k % e.ww * channels;
    for (std::size_t c = 0; c < channels; ++c) y[c] += at[c];
  }
  for (std::size_t c = 0; c < channels; ++c) y[c] *= share;
}

TRIREME_SIMD void add_share(const float* dy, float share, float* dx, std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) dx[c] += share * dy[c];
}

void forward(const Forward& f) {
  const PoolExtents e = pool_extents(f.in[0], f.out[0], f.attributes);
  const auto* x = f.in[0].as<float>();
  auto* y = f.out[0].as<float>();
  const float share = 1 / static_cast<float>(e.wh * e.ww);
  const std::size_t row = e.y_width * e.channels;
  parallel_for(e.batch * e.y_height, grain / (row * e.wh * e.ww + 1) + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      for (std::size_t j = 0; j < e.y_width; ++j) {
        average_window(x + e.x_offset(at / e.y_height, at % e.y_height, j), e.width * e.channels, e, share,
                       y + at * row + j * e.channels);
      }
    }
  });
}

// Picture by picture, windows in one order.
void backward(const Backward& b) {
  if (!tensor_or_none(b.in_grads, 0)) return;
  const PoolExtents e = pool_extents(b.in[0], b.out[0], b.attributes);
  const auto* dy = b.out_grads[0].as<float>();
  auto* dx = b.in_grads[0].as<float>();
  const float share = 1 / static_cast<float>(e.wh * e.ww);
  fill_zero(b.in_grads[0]);
  const std::size_t windows = e.y_height * e.y_width;
  parallel_for(e.batch, grain / (windows * e.wh * e.ww * e.channels + 1) + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin * windows; at < end * windows; ++at) {
      const std::size_t picture = at / windows, i = at % windows / e.y_width, j = at % e.y_width;
      for (std::size_t k = 0; k < e.wh * e.ww; ++k) {
        float* to = dx + e.x_offset(picture, i, j) + (k / e.ww * e.width + k % e.ww) * e.channels;
        add_share(dy + at * e.channels, share, to, e.channels);
      }
    }
  });
}

}  // namespace avg_pool2d
}  // namespace

OpKernels avg_pool2d_kernels() { return {avg_pool2d::forward, avg_pool2d::backward}; }

}  // namespace trireme::backend
