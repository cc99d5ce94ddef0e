// batch_norm in two passes over x forward (statistics; normalise and relu) and two backward (sums; dx). Statistics are
// f32 sums of differences to a block's first row, joined in f64 by Chan, Golub and LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979: no cancellation however far from zero x lies, and the
// same bits for any number of threads. The relu's mask is computed anew from x, which saves reading y.
#include <algorithm>
#include <cmath>

#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/vector.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace batch_norm {

// Σ d and Σ d² of a block, d = x − (the block's first row).
template <std::size_t N>
[[gnu::always_inline]] inline void moment_columns(const float* x, std::size_t rows, std::size_t stride, float* sums,
                                                  float* squares) {
  Vec first[N], sum[N] = {}, square[N] = {};
  for (std::size_t k = 0; k < N; ++k) first[k] = vec(x + k * lanes);
  for (std::size_t i = 1; i < rows; ++i) {
    for (std::size_t k = 0; k < N; ++k) {
      const Vec d = vec(x + i * stride + k * lanes) - first[k];
      sum[k] += d;
      square[k] += d * d;
    }
  }
  for (std::size_t k = 0; k < N; ++k) vec(sums + k * lanes) = sum[k], vec(squares + k * lanes) = square[k];
}

TRIREME_SIMD void moment_block(const float* x, std::size_t rows, std::size_t channels, float* sums, float* squares) {
  std::size_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes) moment_columns<4>(x + c, rows, channels, sums + c, squares + c);
  for (; c + lanes <= channels; c += lanes) moment_columns<1>(x + c, rows, channels, sums + c, squares + c);
  for (; c < channels; ++c) {
    const float first = x[c];
    float sum = 0, square = 0;
    for (std::size_t i = 1; i < rows; ++i) {
      const float d = x[i * channels + c] - first;
      sum += d;
      square += d * d;
    }
    sums[c] = sum;
    squares[c] = square;
  }
}

// What normalising needs of each channel: y = (x − mean) · factor + shift.
struct Affine {
  const float *mean, *factor, *shift;
};

TRIREME_SIMD void normalise_block(const float* x, float* y, std::size_t rows, std::size_t channels, const Affine& by,
                                  bool relu) {
  const Vec zero = {};
  for (std::size_t i = 0; i < rows; ++i, x += channels, y += channels) {
    std::size_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      const Vec value = (vec(x + c) - vec(by.mean + c)) * vec(by.factor + c) + vec(by.shift + c);
      vec(y + c) = relu ? (value < zero ? zero : value) : value;
    }
    for (; c < channels; ++c) {
      const float value = (x[c] - by.mean[c]) * by.factor[c] + by.shift[c];
      y[c] = relu && value < 0 ? 0 : value;
    }
  }
}

// d = x − mean and dz of eight neighbouring channels; dz = dy, with relu 0 where y ≤ 0.
struct Slope {
  Vec d, dz;
};
[[gnu::always_inline]] inline void slope_of(const float* x, const float* dy, const Affine& by, std::size_t c, bool relu,
                                            Slope& to) {
  const Vec zero = {};
  to.d = vec(x) - vec(by.mean + c);
  to.dz = vec(dy);
  if (relu) to.dz = to.d * vec(by.factor + c) + vec(by.shift + c) <= zero ? zero : to.dz;
}

// Σ dz and Σ dz·(x − mean) of a block. Whole rows pass, as they lie in memory, two at a time; the sums stay in the
// first cache.
TRIREME_SIMD void gradient_block(const float* x, const float* dy, std::size_t rows, std::size_t channels,
                                 const Affine& by, bool relu, float* sums, float* products) {
  std::fill(sums, sums + channels, 0.0f);
  std::fill(products, products + channels, 0.0f);
  for (std::size_t i = 0; i < rows; i += 2) {
    const std::size_t first = i * channels, second = i + 1 < rows ? first + channels : first;
    std::size_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      Slope one, two;
      slope_of(x + first + c, dy + first + c, by, c, relu, one);
      slope_of(x + second + c, dy + second + c, by, c, relu, two);
      Vec sum = vec(sums + c) + one.dz, product = vec(products + c) + one.dz * one.d;
      if (second != first) {
        sum += two.dz;
        product += two.dz * two.d;
      }
      vec(sums + c) = sum;
      vec(products + c) = product;
    }
    for (; c < channels; ++c) {
      for (std::size_t row = i; row < std::min(i + 2, rows); ++row) {
        const float d = x[row * channels + c] - by.mean[c];
        const float dz = relu && d * by.factor[c] + by.shift[c] <= 0 ? 0 : dy[row * channels + c];
        sums[c] += dz;
        products[c] += dz * d;
      }
    }
  }
}

// dx = factor·dz + slope·(x − mean) + offset.
TRIREME_SIMD void input_block(const float* x, const float* dy, float* dx, std::size_t rows, std::size_t channels,
                              const Affine& by, const float* slopes, const float* offsets, bool relu) {
  for (std::size_t i = 0; i < rows; ++i, x += channels, dy += channels, dx += channels) {
    std::size_t c = 0;
    for (; c + lanes <= channels; c += lanes) {
      Slope s;
      slope_of(x + c, dy + c, by, c, relu, s);
      vec(dx + c) = vec(by.factor + c) * s.dz + (vec(slopes + c) * s.d + vec(offsets + c));
    }
    for (; c < channels; ++c) {
      const float d = x[c] - by.mean[c];
      const float dz = relu && d * by.factor[c] + by.shift[c] <= 0 ? 0 : dy[c];
      dx[c] = by.factor[c] * dz + (slopes[c] * d + offsets[c]);
    }
  }
}

struct Moments {
  double mean, squares;  // squares: Σ (x − mean)²
};

// Chan's rule over the blocks of channel c.
Moments join(const RowBlocks& blocks, const float* x, const float* sums, const float* squares, std::size_t c) {
  Moments all{0, 0};
  double before = 0;
  for (std::size_t b = 0; b < blocks.count; ++b) {
    const auto n = static_cast<double>(blocks.size(b));
    const double sum = sums[b * blocks.columns + c];
    const double mean = x[blocks.begin(b) * blocks.columns + c] + sum / n;
    const double own = squares[b * blocks.columns + c] - sum * sum / n;
    const double delta = mean - all.mean, after = before + n;
    all.squares += (own < 0 ? 0 : own) + delta * delta * before * n / after;
    all.mean += delta * n / after;
    before = after;
  }
  return all;
}

float* floats(tensor::Arena& scratch, std::size_t count) {
  return static_cast<float*>(scratch.allocate(count * sizeof(float)));
}

// Fills mean, 1 ÷ deviation and the new running buffers from x.
void statistics(const Forward& f, const RowBlocks& blocks) {
  const auto* x = f.in[0].as<float>();
  const std::size_t channels = blocks.columns;
  const double epsilon = f.attributes.number("epsilon"), momentum = f.attributes.number("momentum");
  float* sums = floats(f.scratch, blocks.count * channels);
  float* squares = floats(f.scratch, blocks.count * channels);
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      moment_block(x + blocks.begin(b) * channels, blocks.size(b), channels, sums + b * channels,
                   squares + b * channels);
    }
  });
  const auto *old_mean = f.in[3].as<float>(), *old_variance = f.in[4].as<float>();
  auto *new_mean = f.out[1].as<float>(), *new_variance = f.out[2].as<float>();
  auto *mean = f.saved[0].as<float>(), *inverse = f.saved[1].as<float>();
  const auto n = static_cast<double>(blocks.rows);
  parallel_for(channels, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      const Moments all = join(blocks, x, sums, squares, c);
      mean[c] = static_cast<float>(all.mean);
      inverse[c] = static_cast<float>(1 / std::sqrt(all.squares / n + epsilon));
      new_mean[c] = static_cast<float>((1 - momentum) * old_mean[c] + momentum * all.mean);
      new_variance[c] = static_cast<float>((1 - momentum) * old_variance[c] + momentum * all.squares / (n - 1));
    }
  });
}

void forward(const Forward& f) {
  const Tensor &x = f.in[0], &y = f.out[0];
  const RowBlocks blocks(rows_of(x), columns_of(x));
  const std::size_t channels = blocks.columns;
  const float *scale = f.in[1].as<float>(), *mean = f.in[3].as<float>();
  float* factor = floats(f.scratch, channels);
  if (f.mode == Mode::train) {
    statistics(f, blocks);
    mean = f.saved[0].as<float>();
    const auto* inverse = f.saved[1].as<float>();
    for (std::size_t c = 0; c < channels; ++c) factor[c] = scale[c] * inverse[c];
  } else {
    const auto* variance = f.in[4].as<float>();
    const double epsilon = f.attributes.number("epsilon");
    for (std::size_t c = 0; c < channels; ++c)
      factor[c] = static_cast<float>(scale[c] / std::sqrt(variance[c] + epsilon));
    copy_elements(f.in[3], f.out[1]);
    copy_elements(f.in[4], f.out[2]);
  }
  const Affine by{mean, factor, f.in[2].as<float>()};
  const bool relu = f.attributes.flag("relu");
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t at = blocks.begin(b) * channels;
      normalise_block(x.as<float>() + at, y.as<float>() + at, blocks.size(b), channels, by, relu);
    }
  });
}

void backward(const Backward& b) {
  const Tensor dx = tensor_or_none(b.in_grads, 0), dscale = tensor_or_none(b.in_grads, 1);
  const Tensor dshift = tensor_or_none(b.in_grads, 2), &dy = b.out_grads[0];
  if (!dy) {
    for (const Tensor& gradient : b.in_grads) {
      if (gradient) fill_zero(gradient);
    }
    return;
  }
  const auto *x = b.in[0].as<float>(), *scale = b.in[1].as<float>();
  const auto *mean = b.saved[0].as<float>(), *inverse = b.saved[1].as<float>();
  const RowBlocks blocks(rows_of(b.in[0]), columns_of(b.in[0]));
  const std::size_t channels = blocks.columns;
  const bool relu = b.attributes.flag("relu");
  float* factor = floats(b.scratch, channels);
  for (std::size_t c = 0; c < channels; ++c) factor[c] = scale[c] * inverse[c];
  const Affine by{mean, factor, b.in[2].as<float>()};
  float* sums = floats(b.scratch, blocks.count * channels);
  float* products = floats(b.scratch, blocks.count * channels);
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = blocks.begin(i) * channels;
      gradient_block(x + at, dy.as<float>() + at, blocks.size(i), channels, by, relu, sums + i * channels,
                     products + i * channels);
    }
  });
  float *sum = floats(b.scratch, channels), *product = floats(b.scratch, channels);  // Σ dz, Σ dz·(x − mean)
  add_blocks(sums, blocks.count, channels, sum);
  add_blocks(products, blocks.count, channels, product);
  float *slope = floats(b.scratch, channels), *offset = floats(b.scratch, channels);
  const auto n = static_cast<float>(blocks.rows);
  for (std::size_t c = 0; c < channels; ++c) {
    if (dshift) dshift.as<float>()[c] = sum[c];
    if (dscale) dscale.as<float>()[c] = product[c] * inverse[c];
    slope[c] = -factor[c] * inverse[c] * inverse[c] * product[c] / n;
    offset[c] = -factor[c] * sum[c] / n;
  }
  if (!dx) return;
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = blocks.begin(i) * channels;
      input_block(x + at, dy.as<float>() + at, dx.as<float>() + at, blocks.size(i), channels, by, slope, offset, relu);
    }
  });
}

}  // namespace batch_norm
}  // namespace

OpKernels batch_norm_kernels() { return {batch_norm::forward, batch_norm::backward}; }

}  // namespace trireme::backend
