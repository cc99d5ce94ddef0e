// Kernels, right ones and ones with a planted fault, for tests of the emulation; and the objects that programs over
// them use.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace trireme::cuda_emulation {

// Each queues one kernel on the stream.
void fill(cudaStream_t stream, float* values, float value, std::size_t count);
// to = from + 1
void add_one(cudaStream_t stream, const float* from, float* to, std::size_t count);
// sums[row] of (rows, columns), a block of 128 threads for each row. `barrier` false: one barrier is missing.
void row_sums(cudaStream_t stream, const float* values, float* sums, unsigned rows, unsigned columns, bool barrier);
// The same by shuffles, a warp for each row.
void row_sums_by_warps(cudaStream_t stream, const float* values, float* sums, unsigned rows, unsigned columns);
// Counts blocks; the last one writes how many there were.
void count_blocks(cudaStream_t stream, unsigned* arrived, unsigned* counted, unsigned blocks);

enum class Fault {
  divergent_barrier,      // half of the threads wait at another line
  lost_thread,            // all threads of a warp but one call a collective that names all
  different_collectives,  // lanes of one warp call two kinds
  unwritten_shared,       // reads an element of shared memory that nobody wrote
  much_shared,            // more than a block has
  past_the_end            // writes one element behind `values`
};
void plant(Fault fault, cudaStream_t stream, float* values, std::size_t count);

struct SampleStream {
  SampleStream() { cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;
  ~SampleStream() { cudaStreamDestroy(stream); }
  cudaStream_t stream = nullptr;
};
struct SampleEvent {
  SampleEvent() { cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }
  SampleEvent(const SampleEvent&) = delete;
  SampleEvent& operator=(const SampleEvent&) = delete;
  ~SampleEvent() { cudaEventDestroy(event); }
  cudaEvent_t event = nullptr;
};
// Device memory, or pinned.
template <class T, bool Pinned>
struct SampleMemory {
  explicit SampleMemory(std::size_t count) : bytes(count * sizeof(T)) {
    void* made = nullptr;
    if constexpr (Pinned) {
      cudaHostAlloc(&made, bytes, cudaHostAllocPortable);
    } else {
      cudaMalloc(&made, bytes);
    }
    data = static_cast<T*>(made);
  }
  SampleMemory(const SampleMemory&) = delete;
  SampleMemory& operator=(const SampleMemory&) = delete;
  ~SampleMemory() { Pinned ? cudaFreeHost(data) : cudaFree(data); }
  T* data = nullptr;
  std::size_t bytes;
};
using OnDevice = SampleMemory<float, false>;
using OnHost = SampleMemory<float, true>;

}  // namespace trireme::cuda_emulation
