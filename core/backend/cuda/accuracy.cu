// accuracy: a row is right where no earlier logit reaches the label's and no later one exceeds it. A warp takes a row,
// a whole block where classes are many.
#include <cmath>

#include "core/backend/cuda/labels.h"

namespace trireme::backend::cuda {
namespace {
namespace accuracy {

constexpr unsigned op_index = 1;  // in label_ops
constexpr unsigned all_lanes = 0xffffffffu;

// Whether any lane of the row says so; the same in all lanes of it.
template <unsigned Lanes>
__device__ bool any_of(bool mine) {
  if constexpr (Lanes == 32) {
    return __any_sync(all_lanes, mine ? 1 : 0) != 0;
  } else {
    return __syncthreads_or(mine ? 1 : 0) != 0;
  }
}

template <unsigned Lanes>
__global__ void accuracy_kernel(const float* logits, std::size_t rows, std::size_t classes, unsigned rows_each,
                                Labels labels, Parts parts) {
  const unsigned lane = threadIdx.x % Lanes;
  const std::size_t group = std::size_t{blockIdx.x} * (threads_per_block / Lanes) + threadIdx.x / Lanes;
  Found found;
  for (unsigned i = 0; i < rows_each; ++i) {
    const std::size_t row = group * rows_each + i;
    if (row >= rows) break;  // the same for all lanes of the row
    const float* const x = logits + row * classes;
    const std::int64_t label = label_at(labels, row);
    const bool valid = is_class(labels, label), counts = label != labels.ignored;
    bool against = false;  // NaN stands against any
    if (valid && counts) {
      const float own = x[label];
      for (std::size_t c = lane; c < classes; c += Lanes)
        against = against || !(static_cast<std::int64_t>(c) < label ? x[c] < own : x[c] <= own);
    }
    const bool wrong = any_of<Lanes>(against);
    if (!counts) continue;
    if (!valid) {
      if (found.bad < 0) found.bad = static_cast<double>(row);
      continue;
    }
    found.sum += wrong ? 0 : 1;
    found.weight += 1;
  }
  finish<Lanes>(found, labels, parts);
}

void forward(const Forward& f) {
  const Tensor& logits = f.in[0];
  const std::size_t classes = columns_of(logits), rows = rows_of(logits);
  const Deal deal(rows, classes);
  launch("accuracy", deal.lanes == 32 ? accuracy_kernel<32> : accuracy_kernel<threads_per_block>, deal.blocks,
         threads_per_block, f.stream, logits.as<float>(), rows, classes, deal.rows_each,
         labels_of(f.in[1], logits, f.attributes, op_index), parts_of(deal, f));
}

}  // namespace accuracy
}  // namespace

OpKernels accuracy_kernels() { return {accuracy::forward, nullptr}; }

}  // namespace trireme::backend::cuda
