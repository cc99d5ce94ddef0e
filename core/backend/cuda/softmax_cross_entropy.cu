// softmax_cross_entropy, one pass over the logits forward and one backward. A warp takes a row, a whole block where
// classes are many. Saved for each row: its largest logit and log Σ exp(x − largest), kept apart so that large logits
// lose no digits.
#include <cmath>

#include "core/backend/cuda/labels.h"

namespace trireme::backend::cuda {
namespace {
namespace softmax_cross_entropy {

constexpr unsigned op_index = 0;  // in label_ops
constexpr unsigned all_lanes = 0xffffffffu;

// Of the part of a row that was read: its largest logit and Σ exp(x − largest); NaN goes into the sum.
struct Part {
  float largest = -INFINITY, total = 0;
  double plain = 0;  // Σ x, where labels are smoothed
};

__device__ float shrink(float from, float to) { return from == to ? 1.0f : std::exp(from - to); }

__device__ void take(Part& part, float x, bool smooth) {
  if (smooth) part.plain += double{x};
  if (x > part.largest) {
    part.total = part.total * std::exp(part.largest - x) + 1.0f;
    part.largest = x;
  } else {
    part.total += shrink(x, part.largest);
  }
}

__device__ void join(Part& part, const Part& other) {
  const float largest = other.largest > part.largest ? other.largest : part.largest;
  part.total = part.total * shrink(part.largest, largest) + other.total * shrink(other.largest, largest);
  part.largest = largest;
  part.plain += other.plain;
}

// The whole row's in the first lane: halves are joined in one fixed order.
template <unsigned Lanes>
__device__ void join_lanes(Part& part) {
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    const Part other{__shfl_down_sync(all_lanes, part.largest, distance),
                     __shfl_down_sync(all_lanes, part.total, distance),
                     __shfl_down_sync(all_lanes, part.plain, distance)};
    join(part, other);
  }
  if constexpr (Lanes > 32) {
    constexpr unsigned warps = Lanes / 32;
    TRIREME_SHARED(float, largest, warps);
    TRIREME_SHARED(float, total, warps);
    TRIREME_SHARED(double, plain, warps);
    __syncthreads();  // the row before may still be read
    if (threadIdx.x % 32 == 0) {
      largest[threadIdx.x / 32] = part.largest;
      total[threadIdx.x / 32] = part.total;
      plain[threadIdx.x / 32] = part.plain;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned i = 1; i < warps; ++i) join(part, {largest[i], total[i], plain[i]});
  }
}

struct Rows {
  const float* x;
  std::size_t rows, classes;
  Labels labels;
  double smoothing;
  float* saved;  // (rows, 2)
  unsigned rows_each;
};

template <unsigned Lanes, bool Wide>
__global__ void forward_kernel(Rows r, Parts parts) {
  const unsigned lane = threadIdx.x % Lanes;
  const std::size_t group = std::size_t{blockIdx.x} * (threads_per_block / Lanes) + threadIdx.x / Lanes;
  const bool smooth = r.smoothing > 0;
  Found found;
  for (unsigned i = 0; i < r.rows_each; ++i) {
    const std::size_t row = group * r.rows_each + i;
    if (row >= r.rows) break;  // the same for all lanes of the row
    const float* const x = r.x + row * r.classes;
    Part part;
    if constexpr (Wide) {
      for (std::size_t c = lane; c < r.classes / 4; c += Lanes) {
        const float4 v = reinterpret_cast<const float4*>(x)[c];
        take(part, v.x, smooth), take(part, v.y, smooth), take(part, v.z, smooth), take(part, v.w, smooth);
      }
    } else {
      for (std::size_t c = lane; c < r.classes; c += Lanes) take(part, x[c], smooth);
    }
    join_lanes<Lanes>(part);
    if (lane != 0) continue;
    const float log_total = std::log(part.total);
    r.saved[2 * row] = part.largest;
    r.saved[2 * row + 1] = log_total;
    const std::int64_t label = label_at(r.labels, row);
    if (label == r.labels.ignored) continue;
    if (!is_class(r.labels, label)) {
      if (found.bad < 0) found.bad = static_cast<double>(row);
      continue;
    }
    const double largest = double{part.largest};
    double loss = (1 - r.smoothing) * (largest - double{x[label]} + double{log_total});
    if (smooth) loss += r.smoothing * (largest - part.plain / static_cast<double>(r.classes) + double{log_total});
    found.sum += loss;
    found.weight += 1;
  }
  finish<Lanes>(found, r.labels, parts);
}

struct Gradient {
  const float* x;
  float* dx;
  std::size_t rows, classes;
  Labels labels;
  double smoothing;
  const float* saved;
  Scalar incoming;
};

// dx = g·softmax(x) − off, less at_label at the label.
template <unsigned Lanes, bool Wide>
__global__ void backward_kernel(Gradient r) {
  const unsigned lane = threadIdx.x % Lanes;
  const double incoming = value_of(r.incoming);
  const auto g = static_cast<float>(incoming);
  const auto off = static_cast<float>(incoming * r.smoothing / static_cast<double>(r.classes));
  const auto at_label = static_cast<float>(incoming * (1 - r.smoothing));
  const std::size_t stride = std::size_t{gridDim.x} * (threads_per_block / Lanes);
  for (std::size_t row = std::size_t{blockIdx.x} * (threads_per_block / Lanes) + threadIdx.x / Lanes; row < r.rows;
       row += stride) {
    const float* const x = r.x + row * r.classes;
    float* const dx = r.dx + row * r.classes;
    const std::int64_t label = label_at(r.labels, row);
    const bool counts = label != r.labels.ignored;
    const float largest = r.saved[2 * row], log_total = r.saved[2 * row + 1];
    const auto one = [&](float logit, std::size_t c) {
      if (!counts) return 0.0f;
      const float value = g * std::exp(logit - largest - log_total) - off;
      return static_cast<std::int64_t>(c) == label ? value - at_label : value;
    };
    if constexpr (Wide) {
      for (std::size_t c = lane; c < r.classes / 4; c += Lanes) {
        const float4 v = reinterpret_cast<const float4*>(x)[c];
        reinterpret_cast<float4*>(dx)[c] =
            float4{one(v.x, 4 * c), one(v.y, 4 * c + 1), one(v.z, 4 * c + 2), one(v.w, 4 * c + 3)};
      }
    } else {
      for (std::size_t c = lane; c < r.classes; c += Lanes) dx[c] = one(x[c], c);
    }
  }
}

void forward(const Forward& f) {
  const Tensor& logits = f.in[0];
  const std::size_t classes = columns_of(logits);
  const Rows rows{logits.as<float>(),
                  rows_of(logits),
                  classes,
                  labels_of(f.in[1], logits, f.attributes, op_index),
                  f.attributes.number("smoothing"),
                  f.saved[0].as<float>(),
                  Deal(rows_of(logits), classes).rows_each};
  const Deal deal(rows.rows, classes);
  const bool wide = classes % 4 == 0 && aligned16(rows.x);
  const auto kernel = deal.lanes == 32
                          ? (wide ? forward_kernel<32, true> : forward_kernel<32, false>)
                          : (wide ? forward_kernel<threads_per_block, true> : forward_kernel<threads_per_block, false>);
  launch("softmax_cross_entropy", kernel, deal.blocks, threads_per_block, f.stream, rows, parts_of(deal, f));
}

void backward(const Backward& b) {
  const Tensor dx = tensor_or_none(b.in_grads, 0);
  const Tensor& logits = b.in[0];
  if (!dx || dx.elements() == 0) return;
  const std::size_t classes = columns_of(logits), rows = rows_of(logits);
  const Gradient gradient{logits.as<float>(),
                          dx.as<float>(),
                          rows,
                          classes,
                          labels_of(b.in[1], logits, b.attributes, op_index),
                          b.attributes.number("smoothing"),
                          b.saved[0].as<float>(),
                          scalar(tensor_or_none(b.out_grads, 0))};
  const Deal deal(rows, classes);
  const bool wide = classes % 4 == 0 && aligned16(gradient.x, gradient.dx);
  const auto kernel =
      deal.lanes == 32 ? (wide ? backward_kernel<32, true> : backward_kernel<32, false>)
                       : (wide ? backward_kernel<threads_per_block, true> : backward_kernel<threads_per_block, false>);
  launch("softmax_cross_entropy gradient", kernel, blocks_for(rows, threads_per_block / deal.lanes), threads_per_block,
         b.stream, gradient);
}

}  // namespace softmax_cross_entropy
}  // namespace

OpKernels softmax_cross_entropy_kernels() { return {softmax_cross_entropy::forward, softmax_cross_entropy::backward}; }

}  // namespace trireme::backend::cuda
