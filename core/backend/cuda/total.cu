// Sum over all elements: a block takes 16,384 of them, a thread every 256th; the block that ends last adds the blocks'
// sums.
#include "core/backend/cuda/total.h"

#include "core/backend/cuda/blocks.h"

namespace trireme::backend::cuda {
namespace {

constexpr std::size_t block_elements = 16384;

__global__ void total_kernel(const float* x, std::size_t count, double divisor, double* parts, double* out,
                             unsigned* arrived) {
  TRIREME_SHARED(double, sums, threads_per_block);
  const std::size_t begin = blockIdx.x * block_elements;
  const std::size_t end = begin + block_elements < count ? begin + block_elements : count;
  double sum = 0;
  for (std::size_t i = begin + threadIdx.x; i < end; i += threads_per_block) sum += double{x[i]};
  sums[threadIdx.x] = sum;
  for (unsigned distance = 1; distance < threads_per_block; distance *= 2) {
    __syncthreads();
    if (threadIdx.x % (2 * distance) == 0) sums[threadIdx.x] += sums[threadIdx.x + distance];
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = sums[0];
  if (!ends_last(arrived)) return;
  const double all = sum_of_parts(parts, gridDim.x);
  if (threadIdx.x == 0) *out = all / divisor;
}

template <bool Wide>
__global__ void spread_kernel(Scalar gradient, double divisor, float* dx, std::size_t count) {
  const auto value = static_cast<float>(value_of(gradient) / divisor);
  for_each_group<Wide>(
      count,
      [&](std::size_t g) {
        reinterpret_cast<float4*>(dx)[g] = float4{value, value, value, value};
      },
      [&](std::size_t i) { dx[i] = value; });
}

}  // namespace

void total(const Tensor& x, double divisor, const Tensor& out, tensor::Arena& scratch, device::Stream& stream) {
  const std::size_t size = count(x), blocks = (size + block_elements - 1) / block_elements;
  auto* const parts = static_cast<double*>(scratch.allocate(blocks * sizeof(double)));
  launch("total", total_kernel, static_cast<unsigned>(blocks), threads_per_block, stream, x.as<float>(), size, divisor,
         parts, out.as<double>(), device::cuda::state_of(stream).arrived);
}

void spread(const Scalar& gradient, double divisor, const Tensor& dx, device::Stream& stream) {
  const std::size_t size = count(dx);
  if (size == 0) return;
  const bool wide = aligned16(dx.as<float>());
  launch("spread", wide ? spread_kernel<true> : spread_kernel<false>, blocks_for_groups(size, wide), threads_per_block,
         stream, gradient, divisor, dx.as<float>(), size);
}

}  // namespace trireme::backend::cuda
