// What kernel files of this folder include: the way to start a kernel, and loops over elements.
#pragma once

#include "core/backend/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::backend::cuda {

using device::cuda::aligned16;
using device::cuda::blocks_for;
using device::cuda::launch;
using device::cuda::threads_per_block;

// body(i) for this thread's share of [0, count), neighbours taking neighbours.
template <class Body>
__device__ void for_each_element(std::size_t count, const Body& body) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

// Likewise in groups of four, group(g) for elements [4g, 4g + 4), where Wide; single(i) for what is left over.
template <bool Wide, class Group, class Single>
__device__ void for_each_group(std::size_t count, const Group& group, const Single& single) {
  const std::size_t groups = Wide ? count / 4 : 0, done = 4 * groups;
  if constexpr (Wide) for_each_element(groups, group);
  for_each_element(count - done, [&](std::size_t i) { single(done + i); });
}

// Blocks for that.
[[nodiscard]] inline unsigned blocks_for_groups(std::size_t count, bool wide) {
  return blocks_for(count, wide ? 4 * threads_per_block : threads_per_block);
}

__device__ inline double value_of(const Scalar& scalar) {
  if (scalar.data == nullptr) return 0;
  return scalar.is_f64 ? *static_cast<const double*>(scalar.data) : double{*static_cast<const float*>(scalar.data)};
}

}  // namespace trireme::backend::cuda
