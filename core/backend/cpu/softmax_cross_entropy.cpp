// softmax_cross_entropy. Saved for each row: its largest logit and log Σ exp(x − largest), kept apart so that large
// logits lose no digits.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/labels.h"
#include "core/backend/cpu/vector.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace softmax_cross_entropy {

constexpr std::size_t wide = 16;        // partial sums of a row, so that its loops vectorise
constexpr std::size_t block_rows = 64;  // losses are summed by blocks of rows, then over blocks

// eˣ for x ≤ 0 to 2 ulp (below −87: e⁻⁸⁷), NaN stays: x = n·ln 2 + r, |r| ≤ ln 2 ÷ 2, Taylor's series of r to the
// seventh power (truncated below 5e-9), times 2ⁿ through the exponent bits.
[[gnu::always_inline]] inline float exp_below(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float magic = 12582912.0f;  // 1.5·2²³: adding it rounds to an integer that stands in the low bits
  const float rounded = clamped * 1.44269504f + magic;
  const float n = rounded - magic;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::uint32_t power = (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(magic) + 127u)
                              << 23;
  return p * std::bit_cast<float>(power);
}

struct RowSum {
  float largest, log_total;
};

TRIREME_SIMD void sum_row(const float* x, std::size_t classes, RowSum* result) {
  Vec most = Vec{} + x[0];
  std::size_t c = 0;
  for (; c + lanes <= classes; c += lanes) most = vec(x + c) > most ? vec(x + c) : most;
  float largest = x[0];
  for (std::size_t k = 0; k < lanes; ++k) largest = most[k] > largest ? most[k] : largest;
  for (; c < classes; ++c) largest = x[c] > largest ? x[c] : largest;
  std::array<float, wide> total{};
  c = 0;
  for (; c + wide <= classes; c += wide) {
    for (std::size_t k = 0; k < wide; ++k) total[k] += exp_below(x[c + k] - largest);
  }
  std::array<float, wide> rest{};  // exp of the last few, vectorised as well
  for (std::size_t k = 0; k < classes - c; ++k) rest[k] = exp_below(x[c + k] - largest);
  float sum = 0;
  for (std::size_t k = 0; k < wide; ++k) sum += total[k] + rest[k];
  *result = {largest, std::log(sum)};
}

// dx = g·softmax(x) − off
TRIREME_SIMD void gradient_row(const float* x, std::size_t classes, const RowSum& row, float g, float off, float* dx) {
  const float largest = row.largest, log_total = row.log_total;
  for (std::size_t c = 0; c < classes; ++c) dx[c] = g * exp_below(x[c] - largest - log_total) - off;
}

void forward(const Forward& f) {
  const Tensor& logits = f.in[0];
  const std::size_t classes = columns_of(logits), rows = rows_of(logits);
  const std::int64_t ignored = f.attributes.integer("ignore_index");
  const double smoothing = f.attributes.number("smoothing");
  const auto labels = checked_labels("softmax_cross_entropy", f.in[1], logits.shape[-1], ignored, f.scratch);
  auto* sums = f.saved[0].as<RowSum>();
  const std::size_t blocks = (rows + block_rows - 1) / block_rows;
  auto* partial = static_cast<double*>(f.scratch.allocate(2 * blocks * sizeof(double)));
  parallel_for(blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      double loss = 0, weight = 0;
      for (std::size_t i = b * block_rows; i < std::min(rows, (b + 1) * block_rows); ++i) {
        const float* x = logits.as<float>() + i * classes;
        sum_row(x, classes, &sums[i]);
        if (labels[i] == ignored) continue;
        const double largest = sums[i].largest, log_total = sums[i].log_total;
        double row = (1 - smoothing) * (largest - x[labels[i]] + log_total);
        if (smoothing > 0) {
          double distance = 0;
          for (std::size_t c = 0; c < classes; ++c) distance += largest - x[c];
          row += smoothing * (distance / static_cast<double>(classes) + log_total);
        }
        loss += row;
        weight += 1;
      }
      partial[2 * b] = loss;
      partial[2 * b + 1] = weight;
    }
  });
  double loss = 0, weight = 0;
  for (std::size_t b = 0; b < blocks; ++b) loss += partial[2 * b], weight += partial[2 * b + 1];
  *f.out[0].as<double>() = loss;
  *f.out[1].as<double>() = weight;
}

void backward(const Backward& b) {
  if (!tensor_or_none(b.in_grads, 0)) return;
  const Tensor &logits = b.in[0], &dx = b.in_grads[0];
  const std::size_t classes = columns_of(logits), rows = rows_of(logits);
  const std::int64_t ignored = b.attributes.integer("ignore_index");
  const double smoothing = b.attributes.number("smoothing"), g = scalar(b.out_grads[0]);
  const auto labels = checked_labels("softmax_cross_entropy", b.in[1], logits.shape[-1], ignored, b.scratch);
  const auto* sums = b.saved[0].as<RowSum>();
  const auto off = static_cast<float>(g * smoothing / static_cast<double>(classes));
  const auto at_label = static_cast<float>(g * (1 - smoothing));
  parallel_for(rows, std::max<std::size_t>(1, grain / classes), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      float* row = dx.as<float>() + i * classes;
      if (labels[i] == ignored) {
        std::fill(row, row + classes, 0.0f);
        continue;
      }
      gradient_row(logits.as<float>() + i * classes, classes, sums[i], static_cast<float>(g), off, row);
      row[labels[i]] -= at_label;
    }
  });
}

}  // namespace softmax_cross_entropy
}  // namespace

OpKernels softmax_cross_entropy_kernels() { return {softmax_cross_entropy::forward, softmax_cross_entropy::backward}; }

}  // namespace trireme::backend
