// dropout: the mask comes from the op's random stream, the same bits as on the CPU, in forward and backward. A thread
// takes one Philox block, four elements. A dropped NaN stays NaN.
#include <cmath>

#include "core/backend/cuda/launch.h"

namespace trireme::backend::cuda {
namespace {
namespace dropout {

struct Mask {
  const device::StepBlock* block;
  std::uint32_t ordinal;
  std::uint32_t threshold;  // kept: bits >> 8 ≥ threshold ⟺ to_uniform(bits) ≥ p
  float scale;              // of kept elements
};

template <bool Wide>
__global__ void mask_kernel(Mask mask, const float* x, float* y, std::size_t count) {
  const RandomKey key = device::op_key(*mask.block, mask.ordinal);
  const auto factor = [&](std::uint32_t bits) { return (bits >> 8) >= mask.threshold ? mask.scale : 0.0f; };
  for_each_element((count + 3) / 4, [&](std::size_t g) {
    const Philox4 bits = random_block(key, g);
    if (Wide && 4 * g + 4 <= count) {
      const float4 v = reinterpret_cast<const float4*>(x)[g];
      reinterpret_cast<float4*>(y)[g] =
          float4{v.x * factor(bits.x[0]), v.y * factor(bits.x[1]), v.z * factor(bits.x[2]), v.w * factor(bits.x[3])};
      return;
    }
#pragma unroll
    for (unsigned k = 0; k < 4; ++k)
      if (4 * g + k < count) y[4 * g + k] = x[4 * g + k] * factor(bits.x[k]);
  });
}

void apply_mask(const Tensor& x, const Tensor& y, const ops::Attributes& attributes, const device::StepBlock* block,
                std::uint32_t ordinal, device::Stream& stream) {
  const std::size_t size = count(y);
  if (size == 0) return;
  const double p = attributes.number("p");
  const Mask mask{block, ordinal, static_cast<std::uint32_t>(std::ceil(p * 16777216.0)),
                  static_cast<float>(1 / (1 - p))};
  const bool wide = aligned16(x.as<float>(), y.as<float>());
  launch("dropout", wide ? mask_kernel<true> : mask_kernel<false>, blocks_for(size, 4 * threads_per_block),
         threads_per_block, stream, mask, x.as<float>(), y.as<float>(), size);
}

void forward(const Forward& f) {
  if (f.mode == Mode::train) {
    apply_mask(f.in[0], f.out[0], f.attributes, f.block, f.ordinal, f.stream);
  } else {
    copy_elements(f.in[0], f.out[0], f.stream);
  }
}

void backward(const Backward& b) {
  const Tensor dy = tensor_or_none(b.out_grads, 0), dx = tensor_or_none(b.in_grads, 0);
  if (!dx) return;
  if (!dy) return copy_elements(dy, dx, b.stream);
  apply_mask(dy, dx, b.attributes, b.block, b.ordinal, b.stream);
}

}  // namespace dropout
}  // namespace

OpKernels dropout_kernels() { return {dropout::forward, dropout::backward}; }

}  // namespace trireme::backend::cuda
