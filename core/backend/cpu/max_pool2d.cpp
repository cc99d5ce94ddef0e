// max_pool2d over channels-last pictures. Forward saves where in its window each maximum stood.
#include "core/backend/cpu/pool2d.h"
#include "core/backend/cpu/vector.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace max_pool2d {

// One window, N·8 neighbouring channels; `line` floats from one row of the picture to the next.
template <std::size_t N>
[[gnu::always_inline]] inline void pool_channels(const float* x, std::size_t line, const PoolExtents& e, float* y,
                                                 std::uint8_t* where) {
  Vec most[N];
  IntVec at[N] = {};
  for (std::size_t n = 0; n < N; ++n) most[n] = vec(x + n * lanes);
  std::int32_t k = 0;
  for (std::size_t u = 0; u < e.wh; ++u) {
    for (std::size_t v = 0; v < e.ww; ++v, ++k) {
      const IntVec here = IntVec{} + k;
      for (std::size_t n = 0; n < N; ++n) {
        const Vec value = vec(x + u * line + v * e.channels + n * lanes);
        const IntVec larger = (value > most[n]) | (value != value);
        most[n] = larger ? value : most[n];
        at[n] = larger ? here : at[n];
      }
    }
  }
  for (std::size_t n = 0; n < N; ++n) {
    vec(y + n * lanes) = most[n];
    if (where != nullptr) *reinterpret_cast<ByteVec*>(where + n * lanes) = __builtin_convertvector(at[n], ByteVec);
  }
}

TRIREME_SIMD void pool_window(const float* x, const PoolExtents& e, float* y, std::uint8_t* where) {
  const std::size_t line = e.width * e.channels;
  const auto at = [&](std::size_t c) { return where == nullptr ? nullptr : where + c; };
  std::size_t c = 0;
  for (; c + 4 * lanes <= e.channels; c += 4 * lanes) pool_channels<4>(x + c, line, e, y + c, at(c));
  for (; c + lanes <= e.channels; c += lanes) pool_channels<1>(x + c, line, e, y + c, at(c));
  for (; c < e.channels; ++c) {
    float most = x[c];
    std::size_t best = 0;
    for (std::size_t k = 0; k < e.wh * e.ww; ++k) {
      const float value = x[k / e.ww * line + k % e.ww * e.channels + c];
      if (value > most || value != value) most = value, best = k;
    }
    y[c] = most;
    if (where != nullptr) where[c] = static_cast<std::uint8_t>(best);
  }
}

// One element of a window: dx = dy (or dx += dy) where the maximum stood here, else 0 (or nothing).
TRIREME_SIMD void give_back(const float* dy, const std::uint8_t* where, std::uint8_t here, float* dx,
                            std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) dx[c] = where[c] == here ? dy[c] : 0;
}
TRIREME_SIMD void add_back(const float* dy, const std::uint8_t* where, std::uint8_t here, float* dx,
                           std::size_t channels) {
  for (std::size_t c = 0; c < channels; ++c) dx[c] += where[c] == here ? dy[c] : 0;
}

void forward(const Forward& f) {
  const PoolExtents e = pool_extents(f.in[0], f.out[0], f.attributes);
  const auto* x = f.in[0].as<float>();
  auto* y = f.out[0].as<float>();
  auto* where = tensor_or_none(f.saved, 0).as<std::uint8_t>();
  const std::size_t row = e.y_width * e.channels;
  parallel_for(e.batch * e.y_height, grain / (row * e.wh * e.ww + 1) + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      for (std::size_t j = 0; j < e.y_width; ++j) {
        const std::size_t to = at * row + j * e.channels;
        pool_window(x + e.x_offset(at / e.y_height, at % e.y_height, j), e, y + to,
                    where == nullptr ? nullptr : where + to);
      }
    }
  });
}

void backward(const Backward& b) {
  if (!tensor_or_none(b.in_grads, 0)) return;
  const PoolExtents e = pool_extents(b.in[0], b.out[0], b.attributes);
  const auto* dy = b.out_grads[0].as<float>();
  const auto* where = b.saved[0].as<std::uint8_t>();
  auto* dx = b.in_grads[0].as<float>();
  const bool apart = e.apart();
  if (!apart || !e.covers()) fill_zero(b.in_grads[0]);
  const auto leaf = apart ? give_back : add_back;
  // Windows that overlap are added picture by picture, in one order.
  const std::size_t pieces = apart ? e.batch * e.y_height : e.batch;
  const std::size_t rows = apart ? 1 : e.y_height;
  const std::size_t work = rows * e.y_width * e.wh * e.ww * e.channels;
  parallel_for(pieces, grain / (work + 1) + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin * rows; at < end * rows; ++at) {
      for (std::size_t j = 0; j < e.y_width; ++j) {
        const std::size_t from = (at * e.y_width + j) * e.channels;
        float* window = dx + e.x_offset(at / e.y_height, at % e.y_height, j);
        for (std::size_t k = 0; k < e.wh * e.ww; ++k) {
          leaf(dy + from, where + from, static_cast<std::uint8_t>(k),
               window + (k / e.ww * e.width + k % e.ww) * e.channels, e.channels);
        }
      }
    }
  });
}

}  // namespace max_pool2d
}  // namespace

OpKernels max_pool2d_kernels() { return {max_pool2d::forward, max_pool2d::backward}; }

}  // namespace trireme::backend
