// The one way to start a kernel. Not <<<>>>, so that the same sources compile where the device is emulated: that build
// puts its own header in front (-include), with TRIREME_SHARED and TRIREME_START of its own.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include "core/device/cuda/check.h"
#include "core/device/stream.h"

// A block's shared array. (A macro because a storage class cannot be had otherwise.)
#ifndef TRIREME_SHARED
#define TRIREME_SHARED(Type, name, count) __shared__ Type name[count]
#endif
// start(name, kernel, values, blocks, threads, stream): `values` are the arguments as a tuple, copied before it
// returns.
#ifndef TRIREME_START
#define TRIREME_START ::trireme::device::cuda::start
#endif

namespace trireme::device::cuda {

inline constexpr unsigned threads_per_block = 256;

// Blocks for a grid-stride loop over `count` items, a few waves on the largest device.
[[nodiscard]] inline unsigned blocks_for(std::size_t count, std::size_t per_block = threads_per_block) {
  constexpr std::size_t most = 2048;
  return static_cast<unsigned>(std::clamp<std::size_t>((count + per_block - 1) / per_block, 1, most));
}

// Whether all may be read and written 16 bytes at a time.
template <class... T>
[[nodiscard]] bool aligned16(const T*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

template <class... Parameters>
cudaError_t start(const char*, void (*kernel)(Parameters...), std::tuple<Parameters...>& values, unsigned blocks,
                  unsigned threads, cudaStream_t stream) {
  return std::apply(
      [&](auto&... each) {
        void* pointers[] = {static_cast<void*>(&each)...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads), pointers, 0,
                                stream);
      },
      values);
}

// Queues the kernel on the stream; a wrong launch throws with `name`. Arguments are converted to the kernel's types.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Stream& stream,
            const Arguments&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernel parameters are copied byte by byte");
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  check(TRIREME_START(name, kernel, values, blocks, threads, static_cast<cudaStream_t>(stream.native())), name);
  check(cudaGetLastError(), name);
}

}  // namespace trireme::device::cuda
