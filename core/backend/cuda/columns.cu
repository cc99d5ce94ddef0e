// Column sums: a block takes 32 columns of a chunk of rows, 8 rows at a time, so that neighbouring threads read neighbouring
// columns; a second kernel adds the chunks where there are several.
#include "core/backend/cuda/columns.h"

#include <algorithm>

#include "core/backend/cuda/launch.h"

namespace trireme::backend::cuda {
namespace {

constexpr unsigned across = 32, down = threads_per_block / across;
constexpr std::size_t least_height = 128, most_chunks = 256;

struct Chunks {
  Chunks(std::size_t rows, std::size_t columns)
      : height(std::max(least_height, (rows + most_chunks - 1) / most_chunks)),
        count((rows + height - 1) / height),
        tiles((columns + across - 1) / across) {}
  std::size_t height, count, tiles;
};

enum class Source { plain, product, relu };

__device__ inline float relu_gradient_of(float dy, float y) { return y <= 0.0f ? 0.0f : dy; }

// Source::relu writes dz. One block for each chunk and tile of columns; partial (chunks, columns), or sums where there is one chunk.
template <Source S>
__global__ void column_kernel(const float* x, const float* other, float* dz, std::size_t rows, std::size_t columns,
                              std::size_t height, std::size_t tiles, double* partial, float* sums) {
  TRIREME_SHARED(double, sum, threads_per_block);
  const std::size_t chunk = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const unsigned in_tile = threadIdx.x % across, lane = threadIdx.x / across;
  const std::size_t column = tile * across + in_tile;
  const std::size_t begin = chunk * height, end = begin + height < rows ? begin + height : rows;
  float total = 0;
  if (column < columns) {
    for (std::size_t row = begin + lane; row < end; row += down) {
      const std::size_t at = row * columns + column;
      float value = x == nullptr ? 0.0f : x[at];
      if constexpr (S == Source::product) value *= other[at];
      if constexpr (S == Source::relu) dz[at] = value = relu_gradient_of(value, other[at]);
      total += value;
    }
  }
  sum[threadIdx.x] = double{total};
  __syncthreads();
  if (lane != 0 || column >= columns) return;
  double all = sum[in_tile];
  for (unsigned i = 1; i < down; ++i) all += sum[i * across + in_tile];
  if (partial != nullptr) {
    partial[chunk * columns + column] = all;
  } else {
    sums[column] = static_cast<float>(all);
  }
}

__global__ void add_chunks_kernel(const double* partial, std::size_t chunks, std::size_t columns, float* sums) {
  for_each_element(columns, [&](std::size_t column) {
    double all = 0;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) all += partial[chunk * columns + column];
    sums[column] = static_cast<float>(all);
  });
}

template <bool Wide>
__global__ void relu_gradient_kernel(const float* dy, const float* y, float* dz, std::size_t count) {
  for_each_group<Wide>(
      count,
      [&](std::size_t g) {
        const float4 at = reinterpret_cast<const float4*>(y)[g];
        const float4 in = dy == nullptr ? float4{} : reinterpret_cast<const float4*>(dy)[g];
        reinterpret_cast<float4*>(dz)[g] = float4{relu_gradient_of(in.x, at.x), relu_gradient_of(in.y, at.y),
                                                  relu_gradient_of(in.z, at.z), relu_gradient_of(in.w, at.w)};
      },
      [&](std::size_t i) { dz[i] = relu_gradient_of(dy == nullptr ? 0.0f : dy[i], y[i]); });
}

template <Source S>
void sum_down(const char* name, const float* x, const float* other, float* dz, std::size_t rows, std::size_t columns,
              float* sums, tensor::Arena& scratch, device::Stream& stream) {
  if (columns == 0) return;
  const Chunks chunks(rows, columns);
  double* partial = nullptr;
  if (chunks.count != 1) partial = static_cast<double*>(scratch.allocate(chunks.count * columns * sizeof(double)));
  if (chunks.count > 0)
    launch(name, column_kernel<S>, static_cast<unsigned>(chunks.count * chunks.tiles), threads_per_block, stream, x,
           other, dz, rows, columns, chunks.height, chunks.tiles, partial, sums);
  if (partial != nullptr)
    launch("add chunks", add_chunks_kernel, blocks_for(columns), threads_per_block, stream, partial, chunks.count,
           columns, sums);
}

}  // namespace

void column_sums(const float* x, const float* times, std::size_t rows, std::size_t columns, float* sums,
                 tensor::Arena& scratch, device::Stream& stream) {
  if (times != nullptr) {
    sum_down<Source::product>("column sums", x, times, nullptr, rows, columns, sums, scratch, stream);
  } else {
    sum_down<Source::plain>("column sums", x, nullptr, nullptr, rows, columns, sums, scratch, stream);
  }
}

void relu_gradient(const float* dy, const float* y, float* dz, std::size_t rows, std::size_t columns, float* sums,
                   tensor::Arena& scratch, device::Stream& stream) {
  if (sums != nullptr) return sum_down<Source::relu>("relu gradient", dy, y, dz, rows, columns, sums, scratch, stream);
  const std::size_t count = rows * columns;
  if (count == 0) return;
  const bool wide = aligned16(dy, y, dz);
  launch("relu gradient", wide ? relu_gradient_kernel<true> : relu_gradient_kernel<false>,
         blocks_for_groups(count, wide), threads_per_block, stream, dy, y, dz, count);
}

}  // namespace trireme::backend::cuda
