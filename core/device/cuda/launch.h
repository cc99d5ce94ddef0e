// The one way to start a kernel. Not <<<>>>, so that the same sources compile where the device is emulated.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include "core/device/cuda/check.h"
#include "core/device/stream.h"

// A block's shared array. (A macro because a storage class cannot be had otherwise; an emulated device puts its own here.)
#ifndef TRIREME_SHARED
#define TRIREME_SHARED(Type, name, count) __shared__ Type name[count]
#endif

namespace trireme::device::cuda {

inline constexpr unsigned threads_per_block = 256;

// Blocks for a grid-stride loop over `count` items, a few waves on the largest device.
[[nodiscard]] inline unsigned blocks_for(std::size_t count, std::size_t per_block = threads_per_block) {
  constexpr std::size_t most = 2048;
  return static_cast<unsigned>(std::clamp<std::size_t>((count + per_block - 1) / per_block, 1, most));
}

// Queues the kernel on the stream; a wrong launch throws with `name`. Arguments are converted to the kernel's types.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), unsigned blocks, unsigned threads, Stream& stream,
            const Arguments&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernel parameters are copied byte by byte");
  std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);
  std::apply(
      [&](auto&... each) {
        void* pointers[] = {static_cast<void*>(&each)...};
        check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads), pointers, 0,
                               static_cast<cudaStream_t>(stream.native())),
              name);
      },
      values);
  check(cudaGetLastError(), name);
}

}  // namespace trireme::device::cuda
