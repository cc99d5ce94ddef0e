// Column sums by row blocks.
#include "core/backend/cpu/columns.h"

#include "core/backend/cpu/vector.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {

// Sums of N·8 neighbouring columns stay in registers while all rows pass.
template <std::size_t N>
[[gnu::always_inline]] inline void sum_columns(const float* x, std::size_t rows, std::size_t stride, float* sums) {
  Vec sum[N] = {};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < N; ++k) sum[k] += vec(x + i * stride + k * lanes);
  }
  for (std::size_t k = 0; k < N; ++k) vec(sums + k * lanes) = sum[k];
}

TRIREME_SIMD void sum_block(const float* x, std::size_t rows, std::size_t columns, float* sums) {
  std::size_t c = 0;
  for (; c + 8 * lanes <= columns; c += 8 * lanes) sum_columns<8>(x + c, rows, columns, sums + c);
  for (; c + lanes <= columns; c += lanes) sum_columns<1>(x + c, rows, columns, sums + c);
  for (; c < columns; ++c) {
    float sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += x[i * columns + c];
    sums[c] = sum;
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void mask_columns(const float* dy, const float* y, float* dz, std::size_t rows,
                                                std::size_t stride, float* sums) {
  const Vec zero = {};
  Vec sum[N] = {};
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < N; ++k) {
      const std::size_t at = i * stride + k * lanes;
      const Vec gradient = vec(y + at) <= zero ? zero : vec(dy + at);
      vec(dz + at) = gradient;
      sum[k] += gradient;
    }
  }
  for (std::size_t k = 0; k < N; ++k) vec(sums + k * lanes) = sum[k];
}

TRIREME_SIMD void mask_block(const float* dy, const float* y, float* dz, std::size_t rows, std::size_t columns,
                             float* sums) {
  std::size_t c = 0;
  for (; c + 4 * lanes <= columns; c += 4 * lanes) mask_columns<4>(dy + c, y + c, dz + c, rows, columns, sums + c);
  for (; c + lanes <= columns; c += lanes) mask_columns<1>(dy + c, y + c, dz + c, rows, columns, sums + c);
  for (; c < columns; ++c) {
    float sum = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t at = i * columns + c;
      dz[at] = y[at] <= 0 ? 0 : dy[at];
      sum += dz[at];
    }
    sums[c] = sum;
  }
}

TRIREME_SIMD void mask_range(const float* dy, const float* y, float* dz, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dz[i] = y[i] <= 0 ? 0 : dy[i];
}

TRIREME_SIMD void add_block_range(const float* partial, std::size_t blocks, std::size_t columns, std::size_t begin,
                                  std::size_t end, float* sums) {
  for (std::size_t c = begin; c < end; ++c) {
    double sum = 0;
    for (std::size_t b = 0; b < blocks; ++b) sum += partial[b * columns + c];
    sums[c] = static_cast<float>(sum);
  }
}

}  // namespace

void add_blocks(const float* partial, std::size_t blocks, std::size_t columns, float* sums) {
  parallel_for(columns, 256, [&](std::size_t begin, std::size_t end) {
    add_block_range(partial, blocks, columns, begin, end, sums);
  });
}

void column_sums(const float* x, std::size_t rows, std::size_t columns, float* sums, tensor::Arena& scratch) {
  const RowBlocks blocks(rows, columns);
  auto* partial = static_cast<float*>(scratch.allocate(blocks.count * columns * sizeof(float)));
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      sum_block(x + blocks.begin(b) * columns, blocks.size(b), columns, partial + b * columns);
    }
  });
  add_blocks(partial, blocks.count, columns, sums);
}

void relu_gradient(const float* dy, const float* y, float* dz, std::size_t rows, std::size_t columns, float* sums,
                   tensor::Arena& scratch) {
  if (sums == nullptr) {
    parallel_for(rows * columns, 16384, [&](std::size_t begin, std::size_t end) {
      mask_range(dy + begin, y + begin, dz + begin, end - begin);
    });
    return;
  }
  const RowBlocks blocks(rows, columns);
  auto* partial = static_cast<float*>(scratch.allocate(blocks.count * columns * sizeof(float)));
  parallel_for(blocks.count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t at = blocks.begin(b) * columns;
      mask_block(dy + at, y + at, dz + at, blocks.size(b), columns, partial + b * columns);
    }
  });
  add_blocks(partial, blocks.count, columns, sums);
}

}  // namespace trireme::backend
