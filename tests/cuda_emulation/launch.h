// How kernels come to the emulated device: TRIREME_START of core/device/cuda/launch.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace trireme::cuda_emulation {

struct Argument {
  const void* value;
  std::size_t bytes;
  bool is_pointer;
};
// `body` is one thread's run. Checks sizes, stream and arguments.
cudaError_t launch_kernel(const char* kernel, std::function<void()> body, const Argument* arguments, std::size_t count,
                          unsigned blocks, unsigned threads, cudaStream_t stream);

template <class T>
Argument argument_of(T& value) {
  if constexpr (std::is_class_v<T>) __builtin_clear_padding(&value);  // it may hold old addresses
  return {&value, sizeof value, std::is_pointer_v<T>};
}

template <class... Parameters>
cudaError_t start(const char* kernel, void (*function)(Parameters...), std::tuple<Parameters...>& values,
                  unsigned blocks, unsigned threads, cudaStream_t stream) {
  return std::apply(
      [&](auto&... each) {
        const Argument arguments[] = {argument_of(each)...};
        return launch_kernel(
            kernel, [function, values] { std::apply(function, values); }, arguments, sizeof...(each), blocks, threads,
            stream);
      },
      values);
}

}  // namespace trireme::cuda_emulation
