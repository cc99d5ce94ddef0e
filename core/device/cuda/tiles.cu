// The tree's add, and the sum of squares of each tile in the order that every device keeps: element i of a tile goes to
// partial i mod 8, the eight are added pairwise. A block takes a tile: all of its threads add, 16 bytes at a time where
// alignment allows, and leave the sums in shared memory; there eight threads square, one partial each.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::device::cuda {
namespace {

constexpr unsigned lanes = 8;
static_assert(tile_elements % (4 * threads_per_block) == 0);

// into = left + right where Add; else `left` is only read. `into` may be an operand: each element is read and written
// by one thread.
template <bool Wide, bool Add>
__global__ void tile_kernel(float* into, const float* left, const float* right, std::size_t count, double* squares,
                            std::size_t tiles) {
  TRIREME_SHARED(float, sum, tile_elements);
  TRIREME_SHARED(double, partial, lanes);
  for (std::size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::size_t begin = tile * tile_elements;
    const std::size_t size = begin + tile_elements < count ? tile_elements : count - begin;
    std::size_t done = 0;
    if constexpr (Wide) {
      done = size / 4 * 4;
      for (std::size_t i = 4 * threadIdx.x; i < done; i += 4 * threads_per_block) {
        float4 value = *reinterpret_cast<const float4*>(left + begin + i);
        if constexpr (Add) {
          const float4 other = *reinterpret_cast<const float4*>(right + begin + i);
          value = float4{value.x + other.x, value.y + other.y, value.z + other.z, value.w + other.w};
          *reinterpret_cast<float4*>(into + begin + i) = value;
        }
        sum[i] = value.x, sum[i + 1] = value.y, sum[i + 2] = value.z, sum[i + 3] = value.w;
      }
    }
    for (std::size_t i = done + threadIdx.x; i < size; i += threads_per_block) {
      float value = left[begin + i];
      if constexpr (Add) into[begin + i] = value = value + right[begin + i];
      sum[i] = value;
    }
    __syncthreads();
    if (threadIdx.x < lanes) {
      double total = 0;
      for (std::size_t i = threadIdx.x; i < size; i += lanes) {
        const double value = double{sum[i]};
        total += value * value;  // exact in f64, so fused or not changes nothing
      }
      partial[threadIdx.x] = total;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      const double* const p = partial;
      squares[tile] = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
    }
  }
}

template <bool Wide>
__global__ void add_kernel(float* into, const float* left, const float* right, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  std::size_t begin = first;
  if constexpr (Wide) {
    const std::size_t groups = count / 4;
    for (std::size_t i = first; i < groups; i += stride) {
      const float4 a = reinterpret_cast<const float4*>(left)[i], b = reinterpret_cast<const float4*>(right)[i];
      reinterpret_cast<float4*>(into)[i] = float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
    }
    begin = 4 * groups + first;
  }
  for (std::size_t i = begin; i < count; i += stride) into[i] = left[i] + right[i];
}

}  // namespace

void add(std::span<float> into, std::span<const float> left, std::span<const float> right, std::span<double> squares,
         Stream& stream) {
  check_sizes("add", into.size(), left.size(), right.size());
  if (!squares.empty()) check_squares("add", into.size(), squares.size());
  if (into.empty()) return;
  const bool wide = aligned16(into.data(), left.data(), right.data());
  if (squares.empty()) {
    launch("add", wide ? add_kernel<true> : add_kernel<false>,
           blocks_for(into.size(), (wide ? 4 : 1) * threads_per_block), threads_per_block, stream, into.data(),
           left.data(), right.data(), into.size());
    return;
  }
  launch("add with squares", wide ? tile_kernel<true, true> : tile_kernel<false, true>, blocks_for(squares.size(), 1),
         threads_per_block, stream, into.data(), left.data(), right.data(), into.size(), squares.data(),
         squares.size());
}

void tile_squares(std::span<const float> values, std::span<double> squares, Stream& stream) {
  check_squares("tile_squares", values.size(), squares.size());
  if (squares.empty()) return;
  const bool wide = aligned16(values.data());
  launch("tile_squares", wide ? tile_kernel<true, false> : tile_kernel<false, false>, blocks_for(squares.size(), 1),
         threads_per_block, stream, nullptr, values.data(), nullptr, values.size(), squares.data(), squares.size());
}

}  // namespace trireme::device::cuda
