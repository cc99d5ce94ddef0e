// Results that a whole grid adds up: each block leaves its part, the block that ends last adds the parts in one fixed
// order. No float atomics: the order of blocks changes no bit. Device code; all threads of a block of threads_per_block
// call these.
#pragma once

#include "core/backend/cuda/launch.h"
#include "core/device/cuda/shared.h"

namespace trireme::backend::cuda {

// True in the block that ends last, for all of its threads: what the others wrote before is visible then. `arrived` is
// 0 before and after (StreamState::arrived).
__device__ inline bool ends_last(unsigned* arrived) {
  TRIREME_SHARED(int, last, 1);
  __threadfence();  // this thread's part, before the count
  __syncthreads();
  if (threadIdx.x == 0) last[0] = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1 ? 1 : 0;
  __syncthreads();
  __threadfence();
  return last[0] != 0;
}

// Σ parts, the same for every thread number that takes part: thread t adds parts t, t + 256, …, then the threads' sums
// form a binary tree. The result is in thread 0.
__device__ inline double sum_of_parts(const double* parts, std::size_t count) {
  TRIREME_SHARED(double, sums, threads_per_block);
  const volatile double* const written = parts;  // by other blocks: not from a stale cache line
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < count; i += threads_per_block) sum += written[i];
  __syncthreads();  // an earlier result may still be read
  sums[threadIdx.x] = sum;
  for (unsigned distance = 1; distance < threads_per_block; distance *= 2) {
    __syncthreads();
    if (threadIdx.x % (2 * distance) == 0) sums[threadIdx.x] += sums[threadIdx.x + distance];
  }
  return threadIdx.x == 0 ? sums[0] : 0.0;  // the last to write it
}

}  // namespace trireme::backend::cuda
