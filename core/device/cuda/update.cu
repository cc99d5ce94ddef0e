// The fused update: one block decides (norm, found-inf, skip) and writes the factors, then one pass over the arena applies
// them, 16 bytes at a time. The arithmetic is update_math.h, as on the CPU. A skipped update writes the block's counters alone.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"
#include "core/device/cuda/shared.h"

namespace trireme::device::cuda {
namespace {

constexpr unsigned deciding_threads = 1024;
constexpr unsigned per_thread = 8;  // values that a thread adds in a round
constexpr std::size_t per_round = std::size_t{deciding_threads} * per_thread;
constexpr std::size_t most_tiles = per_round * deciding_threads;  // 3.4e10 parameters

struct Decision {
  UpdateRule rule;
  const double* tile_squares;
  std::size_t tiles;
  const double* buffer_checks;
  std::size_t checks;
  const double* total_weight;
  const double* total_loss;  // may be null
  double n;
  StepBlock* block;
  double* norm;  // may be null
  UpdateFactors* factors;
};

struct Pass {
  float* parameters;
  const float* gradients;
  float* moment1;
  float* moment2;
  std::size_t count;
  std::size_t decay_begin, decay_end;
  float* buffers;
  const float* buffer_sums;
  std::size_t buffer_count;
  float buffer_factor;
  const UpdateFactors* factors;
};

enum class Rule { sgd, momentum, adamw };

// values[0] becomes the binary tree's sum of all `deciding_threads` values. Met by all threads; ends with a barrier.
__device__ void tree_in_place(double* values) {
  for (unsigned distance = 1; distance < deciding_threads; distance *= 2) {
    __syncthreads();
    if (threadIdx.x % (2 * distance) == 0) values[threadIdx.x] += values[threadIdx.x + distance];
  }
  __syncthreads();
}

__global__ void decide_kernel(Decision d) {
  TRIREME_SHARED(double, sums, deciding_threads);
  TRIREME_SHARED(double, rounds, deciding_threads);
  TRIREME_SHARED(int, bad, deciding_threads);
  // tree_sum pads with zeros to a power of two, so rounds of 8,192 values are subtrees, and these form a tree again.
  rounds[threadIdx.x] = 0;
  for (std::size_t round = 0; round * per_round < d.tiles; ++round) {
    const std::size_t first = round * per_round + threadIdx.x * per_thread;
    double v[per_thread];
#pragma unroll
    for (unsigned i = 0; i < per_thread; ++i) v[i] = first + i < d.tiles ? d.tile_squares[first + i] : 0.0;
    sums[threadIdx.x] = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    tree_in_place(sums);
    if (threadIdx.x == 0) rounds[round] = sums[0];
    __syncthreads();
  }
  tree_in_place(rounds);
  int not_finite = 0;
  for (std::size_t i = threadIdx.x; i < d.checks; i += deciding_threads)
    not_finite |= is_finite(d.buffer_checks[i]) ? 0 : 1;
  bad[threadIdx.x] = not_finite;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < deciding_threads; ++i) not_finite |= bad[i];
  const bool rest_finite = not_finite == 0 && (d.total_loss == nullptr || is_finite(*d.total_loss));
  *d.factors = begin_update(d.rule, rounds[0], rest_finite, *d.total_weight, d.n, *d.block, d.norm);
}

template <Rule R>
__device__ void one(float& parameter, float gradient, float& moment1, float& moment2, const UpdateFactors& f) {
  if constexpr (R == Rule::adamw) adamw_step(parameter, gradient, moment1, moment2, f);
  if constexpr (R == Rule::momentum) momentum_step(parameter, gradient, moment1, f);
  if constexpr (R == Rule::sgd) sgd_step(parameter, gradient, f);
}

template <Rule R, bool Wide>
__global__ void update_kernel(Pass p) {
  UpdateFactors f = *p.factors;
  if (!f.apply) return;
  const float decay = f.decay;
  const float no_decay = without_decay(f, R == Rule::adamw ? UpdateRule::Kind::adamw : UpdateRule::Kind::sgd).decay;
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const auto at = [&](std::size_t i, float& parameter, float gradient, float& moment1, float& moment2) {
    f.decay = i >= p.decay_begin && i < p.decay_end ? decay : no_decay;
    one<R>(parameter, gradient, moment1, moment2, f);
  };
  std::size_t begin = first;
  if constexpr (Wide) {
    const std::size_t groups = p.count / 4;
    for (std::size_t i = first; i < groups; i += stride) {
      float4 parameter = reinterpret_cast<float4*>(p.parameters)[i];
      const float4 gradient = reinterpret_cast<const float4*>(p.gradients)[i];
      float4 m{}, v{};
      if constexpr (R != Rule::sgd) m = reinterpret_cast<float4*>(p.moment1)[i];
      if constexpr (R == Rule::adamw) v = reinterpret_cast<float4*>(p.moment2)[i];
      at(4 * i, parameter.x, gradient.x, m.x, v.x);
      at(4 * i + 1, parameter.y, gradient.y, m.y, v.y);
      at(4 * i + 2, parameter.z, gradient.z, m.z, v.z);
      at(4 * i + 3, parameter.w, gradient.w, m.w, v.w);
      reinterpret_cast<float4*>(p.parameters)[i] = parameter;
      if constexpr (R != Rule::sgd) reinterpret_cast<float4*>(p.moment1)[i] = m;
      if constexpr (R == Rule::adamw) reinterpret_cast<float4*>(p.moment2)[i] = v;
    }
    begin = 4 * groups + first;
  }
  float unused = 0;
  for (std::size_t i = begin; i < p.count; i += stride) {
    at(i, p.parameters[i], p.gradients[i], R != Rule::sgd ? p.moment1[i] : unused,
       R == Rule::adamw ? p.moment2[i] : unused);
  }
  for (std::size_t i = first; i < p.buffer_count; i += stride) p.buffers[i] = p.buffer_sums[i] * p.buffer_factor;
}

template <Rule R>
void pass(const Pass& p, Stream& stream) {
  const bool wide = aligned16(p.parameters, p.gradients, p.moment1, p.moment2);  // null is aligned
  launch("update", wide ? update_kernel<R, true> : update_kernel<R, false>,
         blocks_for(p.count, (wide ? 4 : 1) * threads_per_block), threads_per_block, stream, p);
}

}  // namespace

void update(const UpdateArguments& a, Stream& stream) {
  check_update(a, most_tiles);
  UpdateFactors* const factors = shared().factors;
  const Decision decision{a.rule,
                          a.tile_squares.data(),
                          a.tile_squares.size(),
                          a.buffer_checks.data(),
                          a.buffer_checks.size(),
                          a.total_weight,
                          a.total_loss,
                          a.n,
                          a.block,
                          a.norm,
                          factors};
  launch("update (decide)", decide_kernel, 1, deciding_threads, stream, decision);
  const Pass p{a.parameters.data(),  a.gradients.data(), a.moment1.data(), a.moment2.data(),
               a.parameters.size(),  a.decayed.begin,    a.decayed.end,    a.buffers.data(),
               a.buffer_sums.data(), a.buffers.size(),   a.buffer_factor,  factors};
  if (a.rule.kind == UpdateRule::Kind::adamw) {
    pass<Rule::adamw>(p, stream);
  } else if (a.rule.momentum != 0) {
    pass<Rule::momentum>(p, stream);
  } else {
    pass<Rule::sgd>(p, stream);
  }
}

}  // namespace trireme::device::cuda
