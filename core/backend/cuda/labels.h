// Class labels of any integer type, checked where they are read. A kernel cannot throw: it leaves the first row at
// fault in pinned memory, makes its result NaN, and the host throws a step late (Device::throw_fault).
#pragma once

#include <cstdint>

#include "core/backend/cuda/blocks.h"

namespace trireme::backend::cuda {

struct Labels {
  const void* data;
  Dtype dtype;
  std::int64_t classes, ignored;
  std::uint32_t op;  // of label_ops
  device::cuda::LabelFault* fault;
};

[[nodiscard]] inline Labels labels_of(const Tensor& labels, const Tensor& logits, const ops::Attributes& attributes,
                                      std::uint32_t op) {
  return {labels.data,
          labels.dtype,
          logits.shape[-1],
          attributes.integer("ignore_index"),
          op,
          device::cuda::shared().fault};
}

__device__ inline std::int64_t label_at(const Labels& labels, std::size_t row) {
  if (labels.dtype == Dtype::i64) return static_cast<const std::int64_t*>(labels.data)[row];
  if (labels.dtype == Dtype::i32) return static_cast<const std::int32_t*>(labels.data)[row];
  return static_cast<const std::uint8_t*>(labels.data)[row];
}
__device__ inline bool is_class(const Labels& labels, std::int64_t label) {
  return label >= 0 && label < labels.classes;
}

// What a group of threads found in its rows.
struct Found {
  double sum = 0, weight = 0;
  double bad = -1;  // the first row whose label is at fault, as f64 (exact below 2^53); -1: none
};
// The grid's parts, one a block each.
struct Parts {
  double* sum;
  double* weight;
  double* bad;
  double* out_sum;
  double* out_weight;
  unsigned* arrived;
};

// Adds what the block's groups found (`found` counts in the first lane of each), then, in the block that ends last,
// what the blocks found; writes the outputs there, NaN for the sum where a label is at fault. All threads of the block
// call it.
template <unsigned Lanes>
__device__ void finish(const Found& found, const Labels& labels, const Parts& parts) {
  constexpr unsigned groups = threads_per_block / Lanes;
  TRIREME_SHARED(double, group_sum, groups);
  TRIREME_SHARED(double, group_weight, groups);
  TRIREME_SHARED(double, group_bad, groups);
  if (threadIdx.x % Lanes == 0) {
    group_sum[threadIdx.x / Lanes] = found.sum;
    group_weight[threadIdx.x / Lanes] = found.weight;
    group_bad[threadIdx.x / Lanes] = found.bad;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    Found all = found;
    for (unsigned i = 1; i < groups; ++i) {
      all.sum += group_sum[i];
      all.weight += group_weight[i];
      if (all.bad < 0) all.bad = group_bad[i];  // groups hold rows in order
    }
    parts.sum[blockIdx.x] = all.sum;
    parts.weight[blockIdx.x] = all.weight;
    parts.bad[blockIdx.x] = all.bad;
  }
  if (!ends_last(parts.arrived)) return;
  const double sum = sum_of_parts(parts.sum, gridDim.x), weight = sum_of_parts(parts.weight, gridDim.x);
  if (threadIdx.x != 0) return;
  double bad = -1;
  const volatile double* const written = parts.bad;
  for (unsigned i = 0; i < gridDim.x && bad < 0; ++i) bad = written[i];
  *parts.out_sum = bad < 0 ? sum : std::nan("");
  *parts.out_weight = weight;
  if (bad < 0 || labels.fault->set != 0) return;
  const auto row = static_cast<std::size_t>(bad);
  labels.fault->op = labels.op;
  labels.fault->row = static_cast<std::int64_t>(row);
  labels.fault->label = label_at(labels, row);
  labels.fault->classes = labels.classes;
  labels.fault->ignored = labels.ignored;
  labels.fault->set = 1;
}

// How rows are dealt: `lanes` threads take a row, a group of them `rows_each` rows in order, one after the other.
// Follows from the shape alone, and with it the order of the sum.
struct Deal {
  Deal(std::size_t rows, std::size_t classes)
      : lanes(classes > 2048 ? threads_per_block : 32u), rows_each(lanes == 32 && rows >= 65536 ? 8 : 1) {
    const std::size_t each_block = threads_per_block / lanes * rows_each;
    blocks = static_cast<unsigned>((rows + each_block - 1) / each_block);
    if (blocks == 0) blocks = 1;  // no rows: the outputs are 0
  }
  unsigned lanes, rows_each, blocks;
};

[[nodiscard]] inline Parts parts_of(const Deal& deal, const Forward& f) {
  auto* const memory = static_cast<double*>(f.scratch.allocate(3 * deal.blocks * sizeof(double)));
  return {memory,
          memory + deal.blocks,
          memory + 2 * deal.blocks,
          f.out[0].as<double>(),
          f.out[1].as<double>(),
          device::cuda::state_of(f.stream).arrived};
}

}  // namespace trireme::backend::cuda
