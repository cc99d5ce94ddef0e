// The device's language in C++: put in front of kernel files (-include) where g++ compiles them for the emulated
// device. Only what our kernels use; the rest does not compile.
#pragma once

#ifdef __CUDACC__
#error "this header is for a compiler of the host"
#endif

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/cuda_emulation/grid.h"
#include "tests/cuda_emulation/launch.h"

// The real headers are in already; for the host they define some of these and use none.
#undef __shared__
#undef __constant__
#undef __managed__
#undef __launch_bounds__
#define __shared__ trireme_kernels_take_shared_memory_by_TRIREME_SHARED
#define __constant__ trireme_kernels_use_no_constant_memory
#define __managed__ trireme_kernels_use_no_managed_memory
#define __launch_bounds__(...)

#define threadIdx (::trireme::cuda_emulation::current_thread->thread_index)
#define blockIdx (::trireme::cuda_emulation::current_thread->block_index)
#define blockDim (::trireme::cuda_emulation::current_thread->block_extent)
#define gridDim (::trireme::cuda_emulation::current_thread->grid_extent)

#define TRIREME_START ::trireme::cuda_emulation::start
// The static object of the lambda is one for each place and each instance of a template.
#define TRIREME_SHARED(Type, name, count)                                                    \
  Type(&name)[count] = *static_cast<Type(*)[count]>(::trireme::cuda_emulation::shared_array( \
      [] {                                                                                   \
        static char site;                                                                    \
        return static_cast<const void*>(&site);                                              \
      }(),                                                                                   \
      sizeof(Type[count]), alignof(Type) < 16 ? 16 : alignof(Type), #name, ::std::source_location::current()))

namespace trireme::cuda_emulation {

template <class T>
std::uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T value_of_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// What lane `from` gives; the own value where that lies outside of the `width` lanes that shuffle among themselves.
template <class T>
T shuffle(unsigned mask, T value, int from, bool inside, Collective kind, Place place) {
  const auto lane = static_cast<int>(current_thread->lane);
  const Met met = meet(mask, kind, bits_of(value), place);
  if (!inside || from == lane) return value;
  if ((met.lanes >> from & 1u) == 0) trap("a shuffle reads a lane that does not take part", place);
  return value_of_bits<T>(met.values[from]);
}

inline int lane_of_thread() { return static_cast<int>(current_thread->lane); }

}  // namespace trireme::cuda_emulation

inline void __syncthreads(std::source_location place = std::source_location::current()) {
  trireme::cuda_emulation::block_barrier(false, place);
}
inline int __syncthreads_or(int predicate, std::source_location place = std::source_location::current()) {
  return trireme::cuda_emulation::block_barrier(predicate != 0, place) ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, std::source_location place = std::source_location::current()) {
  trireme::cuda_emulation::meet(mask, trireme::cuda_emulation::Collective::sync, 0, place);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location place = std::source_location::current()) {
  const int from = (trireme::cuda_emulation::lane_of_thread() & ~(width - 1)) + (source & (width - 1));
  return trireme::cuda_emulation::shuffle(mask, value, from, true, trireme::cuda_emulation::Collective::shuffle, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 std::source_location place = std::source_location::current()) {
  const int lane = trireme::cuda_emulation::lane_of_thread(), from = lane - static_cast<int>(distance);
  return trireme::cuda_emulation::shuffle(mask, value, from, from >= (lane & ~(width - 1)),
                                          trireme::cuda_emulation::Collective::up, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   std::source_location place = std::source_location::current()) {
  const int lane = trireme::cuda_emulation::lane_of_thread(), from = lane + static_cast<int>(distance);
  return trireme::cuda_emulation::shuffle(mask, value, from, from <= (lane | (width - 1)),
                                          trireme::cuda_emulation::Collective::down, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  std::source_location place = std::source_location::current()) {
  const int lane = trireme::cuda_emulation::lane_of_thread(), from = lane ^ bits;
  return trireme::cuda_emulation::shuffle(mask, value, from, from <= (lane | (width - 1)),
                                          trireme::cuda_emulation::Collective::butterfly, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location place = std::source_location::current()) {
  using namespace trireme::cuda_emulation;
  const Met met = meet(mask, Collective::ballot, predicate != 0 ? 1 : 0, place);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < warp_lanes; ++lane)
    if ((met.lanes >> lane & 1u) != 0 && met.values[lane] != 0) ballot |= 1u << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return __ballot_sync(mask, predicate, place) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, std::source_location place = std::source_location::current()) {
  return __ballot_sync(mask, predicate != 0 ? 0 : 1, place) == 0 ? 1 : 0;
}

// One thread runs at a time, so these are atomic as they are.
template <class T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = old + value;
  return old;
}
template <class T>
T atomicMax(T* address, T value) {
  const T old = *address;
  if (old < value) *address = value;
  return old;
}
template <class T>
T atomicExch(T* address, T value) {
  const T old = *address;
  *address = value;
  return old;
}
template <class T>
T atomicCAS(T* address, T expected, T value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
inline unsigned atomicInc(unsigned* address, unsigned last) {
  const unsigned old = *address;
  *address = old >= last ? 0 : old + 1;
  return old;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline int __float_as_int(float x) {
  return trireme::cuda_emulation::value_of_bits<int>(trireme::cuda_emulation::bits_of(x));
}
inline float __int_as_float(int x) {
  return trireme::cuda_emulation::value_of_bits<float>(trireme::cuda_emulation::bits_of(x));
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
