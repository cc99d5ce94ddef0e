// Sums down the columns of a (rows, columns) array. Rows are cut in blocks whose size follows from the columns alone:
// f32 sums within a block, f64 over blocks, always in the same order, so the number of threads changes no bit.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/tensor/arena.h"

namespace trireme::backend {

// Blocks of about 64 KiB (they stay in the second-level cache between passes), of at most 1,024 rows (f32 sums).
struct RowBlocks {
  RowBlocks(std::size_t rows_, std::size_t columns_)
      : rows(rows_),
        columns(columns_),
        height(std::clamp<std::size_t>(16384 / std::max<std::size_t>(columns_, 1), 16, 1024)),
        count((rows_ + height - 1) / height) {}

  std::size_t rows, columns, height, count;

  [[nodiscard]] std::size_t begin(std::size_t block) const { return block * height; }
  [[nodiscard]] std::size_t size(std::size_t block) const { return std::min(height, rows - begin(block)); }
};

// sums (columns) = Σ over rows of x (rows, columns).
void column_sums(const float* x, std::size_t rows, std::size_t columns, float* sums, tensor::Arena& scratch);
// dz = dy where y > 0, else 0 (NaN in y passes dy); sums as above of dz, if not null.
void relu_gradient(const float* dy, const float* y, float* dz, std::size_t rows, std::size_t columns, float* sums,
                   tensor::Arena& scratch);
// sums[c] = Σ over blocks of partial (blocks, columns).
void add_blocks(const float* partial, std::size_t blocks, std::size_t columns, float* sums);

}  // namespace trireme::backend
