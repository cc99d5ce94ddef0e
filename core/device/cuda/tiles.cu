// Sum of squares of each tile, in the order that every device keeps: element i of a tile goes to partial i mod 8, the eight
// are added pairwise. Eight threads a tile; neighbours read neighbouring elements.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::device::cuda {
namespace {

constexpr unsigned lanes = 8;
constexpr unsigned tiles_per_block = threads_per_block / lanes;

__global__ void tile_squares_kernel(const float* values, std::size_t count, double* squares, std::size_t tiles) {
  TRIREME_SHARED(double, partial, threads_per_block);
  const unsigned lane = threadIdx.x % lanes;
  const unsigned first = threadIdx.x - lane;  // of this tile's eight
  // All threads take part in each round, so that the barriers are met by all.
  for (std::size_t base = std::size_t{blockIdx.x} * tiles_per_block; base < tiles;
       base += std::size_t{gridDim.x} * tiles_per_block) {
    const std::size_t tile = base + threadIdx.x / lanes;
    double sum = 0;
    if (tile < tiles) {
      const std::size_t begin = tile * tile_elements;
      const std::size_t end = begin + tile_elements < count ? begin + tile_elements : count;
      for (std::size_t i = begin + lane; i < end; i += lanes) {
        const double value = static_cast<double>(values[i]);
        sum += value * value;  // exact in f64, so fused or not changes nothing
      }
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (lane == 0 && tile < tiles) {
      const double* const p = partial + first;
      squares[tile] = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
    }
    __syncthreads();
  }
}

}  // namespace

void tile_squares(std::span<const float> values, std::span<double> squares, Stream& stream) {
  if (squares.empty()) return;
  launch("tile_squares", tile_squares_kernel, blocks_for(squares.size(), tiles_per_block), threads_per_block, stream,
         values.data(), values.size(), squares.data(), squares.size());
}

}  // namespace trireme::device::cuda
