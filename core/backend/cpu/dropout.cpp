// dropout: the mask comes from the op's random stream, the same in forward and backward. A dropped NaN stays NaN.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace dropout {

constexpr std::size_t philox_lanes = 32;         // Philox blocks at a time; GCC unrolls 16 before it vectorises
constexpr std::size_t piece = 4 * philox_lanes;  // elements they cover

struct Mask {
  RandomKey key;
  std::uint32_t threshold;  // kept: bits >> 8 ≥ threshold ⟺ to_uniform(bits) ≥ p
  float scale;              // of kept elements
};

// random_block(key, first + lane) for all lanes, as 4·lanes numbers in stream order.
[[gnu::always_inline]] inline void random_blocks(const RandomKey& key, std::uint64_t first,
                                                 std::array<std::uint32_t, piece>& bits) {
  std::array<std::uint32_t, philox_lanes> x0{}, x1{}, x2{}, x3{};
  for (std::size_t j = 0; j < philox_lanes; ++j) {
    x0[j] = static_cast<std::uint32_t>(first + j);
    x1[j] = static_cast<std::uint32_t>((first + j) >> 32);
    x2[j] = key.c2;
    x3[j] = key.c3;
  }
  std::uint32_t k0 = key.k0, k1 = key.k1;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t j = 0; j < philox_lanes; ++j) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * x0[j], p1 = std::uint64_t{0xCD9E8D57u} * x2[j];
      x0[j] = static_cast<std::uint32_t>(p1 >> 32) ^ x1[j] ^ k0;
      x1[j] = static_cast<std::uint32_t>(p1);
      x2[j] = static_cast<std::uint32_t>(p0 >> 32) ^ x3[j] ^ k1;
      x3[j] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (std::size_t j = 0; j < philox_lanes; ++j) {
    bits[4 * j] = x0[j];
    bits[4 * j + 1] = x1[j];
    bits[4 * j + 2] = x2[j];
    bits[4 * j + 3] = x3[j];
  }
}

// y = x·mask over [begin, end); begin is a multiple of piece.
TRIREME_SIMD void mask_range(const Mask& mask, const float* x, float* y, std::size_t begin, std::size_t end) {
  const std::uint32_t threshold = mask.threshold;
  const float scale = mask.scale;
  std::array<std::uint32_t, piece> bits;
  std::array<float, piece> factor;
  for (std::size_t at = begin; at < end; at += piece) {
    random_blocks(mask.key, at / 4, bits);
    for (std::size_t i = 0; i < piece; ++i) factor[i] = (bits[i] >> 8) >= threshold ? scale : 0;
    const std::size_t size = std::min(piece, end - at);
    for (std::size_t i = 0; i < size; ++i) y[at + i] = x[at + i] * factor[i];
  }
}

void apply_mask(const Tensor& x, const Tensor& y, const ops::Attributes& attributes, const device::StepBlock& block,
                std::uint32_t ordinal) {
  const double p = attributes.number("p");
  const Mask mask{device::op_key(block, ordinal), static_cast<std::uint32_t>(std::ceil(p * 16777216.0)),
                  static_cast<float>(1 / (1 - p))};
  parallel_for(count(x), 64 * piece,
               [&](std::size_t begin, std::size_t end) { mask_range(mask, x.as<float>(), y.as<float>(), begin, end); });
}

void forward(const Forward& f) {
  if (f.mode == Mode::train) {
    apply_mask(f.in[0], f.out[0], f.attributes, *f.block, f.ordinal);
  } else {
    copy_elements(f.in[0], f.out[0]);
  }
}

void backward(const Backward& b) {
  if (tensor_or_none(b.in_grads, 0)) apply_mask(b.out_grads[0], b.in_grads[0], b.attributes, *b.block, b.ordinal);
}

}  // namespace dropout
}  // namespace

OpKernels dropout_kernels() { return {dropout::forward, dropout::backward}; }

}  // namespace trireme::backend
