// Compiled with device_language.h in front, as the module's kernels are.
#include "tests/cuda_emulation/sample_kernels.h"

#include <cuda_runtime.h>

#include <tuple>
#include <utility>

namespace trireme::cuda_emulation {
namespace {

template <class... Parameters, class... Arguments>
void queue(const char* name, void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
           Arguments... arguments) {
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  TRIREME_START(name, kernel, values, blocks, threads, stream);
}

__global__ void fill_kernel(float* values, float value, std::size_t count) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) values[i] = value;
}

__global__ void add_one_kernel(const float* from, float* to, std::size_t count) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = __ldg(from + i) + 1;
}

constexpr unsigned row_threads = 128;

template <bool Barrier>
__global__ void row_sums_kernel(const float* values, float* sums, unsigned columns) {
  TRIREME_SHARED(float, parts, row_threads);
  float mine = 0;
  for (unsigned i = threadIdx.x; i < columns; i += row_threads) mine += values[blockIdx.x * columns + i];
  parts[threadIdx.x] = mine;
  if constexpr (Barrier) __syncthreads();
  for (unsigned half = row_threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

__global__ void row_sums_by_warps_kernel(const float* values, float* sums, unsigned rows, unsigned columns) {
  const unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
  for (unsigned i = threadIdx.x % 32; i < columns; i += 32) sum += values[row * columns + i];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  if (threadIdx.x % 32 == 0) sums[row] = sum;
}

__global__ void count_blocks_kernel(unsigned* arrived, unsigned* counted) {
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1) atomicAdd(counted, gridDim.x);
}

__global__ void divergent_kernel(float* values) {
  if (threadIdx.x % 2 == 0) {
    values[threadIdx.x] = 1;
    __syncthreads();
  } else {
    __syncthreads();
  }
}

// Lane 5 waits for the rest of the block, which its warp does not reach.
__global__ void lost_thread_kernel(float* values) {
  if (threadIdx.x != 5) __syncwarp();
  values[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void different_collectives_kernel(float* values) {
  const float value = 1;
  values[threadIdx.x] =
      threadIdx.x % 2 == 0 ? __shfl_sync(0xffffffffu, value, 0) : __shfl_xor_sync(0xffffffffu, value, 1);
}

__global__ void unwritten_kernel(float* values) {
  TRIREME_SHARED(float, parts, 33);
  parts[threadIdx.x] = 1;
  __syncthreads();
  values[threadIdx.x] = parts[threadIdx.x + 1];
}

__global__ void much_shared_kernel(float* values) {
  TRIREME_SHARED(float, parts, 12 * 1024 + 1);
  parts[threadIdx.x] = 1;
  values[threadIdx.x] = parts[threadIdx.x];
}

__global__ void past_the_end_kernel(float* values, std::size_t count) {
  if (threadIdx.x == 0) values[count] = 1;
}

}  // namespace

void fill(cudaStream_t stream, float* values, float value, std::size_t count) {
  queue("fill", fill_kernel, 4, 64, stream, values, value, count);
}
void add_one(cudaStream_t stream, const float* from, float* to, std::size_t count) {
  queue("add one", add_one_kernel, 4, 64, stream, from, to, count);
}
void row_sums(cudaStream_t stream, const float* values, float* sums, unsigned rows, unsigned columns, bool barrier) {
  queue("row sums", barrier ? row_sums_kernel<true> : row_sums_kernel<false>, rows, row_threads, stream, values, sums,
        columns);
}
void row_sums_by_warps(cudaStream_t stream, const float* values, float* sums, unsigned rows, unsigned columns) {
  queue("row sums by warps", row_sums_by_warps_kernel, (rows + 1) / 2, 64, stream, values, sums, rows, columns);
}
void count_blocks(cudaStream_t stream, unsigned* arrived, unsigned* counted, unsigned blocks) {
  queue("count blocks", count_blocks_kernel, blocks, 32, stream, arrived, counted);
}

void plant(Fault fault, cudaStream_t stream, float* values, std::size_t count) {
  switch (fault) {
    case Fault::divergent_barrier: queue("divergent", divergent_kernel, 2, 64, stream, values); break;
    case Fault::lost_thread: queue("lost thread", lost_thread_kernel, 1, 64, stream, values); break;
    case Fault::different_collectives:
      queue("different collectives", different_collectives_kernel, 1, 32, stream, values);
      break;
    case Fault::unwritten_shared: queue("unwritten", unwritten_kernel, 1, 32, stream, values); break;
    case Fault::much_shared: queue("much shared", much_shared_kernel, 1, 32, stream, values); break;
    case Fault::past_the_end: queue("past the end", past_the_end_kernel, 1, 32, stream, values, count); break;
  }
}

}  // namespace trireme::cuda_emulation
