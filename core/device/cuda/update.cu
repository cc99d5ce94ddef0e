// The fused update: one block decides (norm, found-inf, skip) and writes the factors, then one pass over the arena applies
// them. The arithmetic is update_math.h, as on the CPU. A skipped update writes the block's counters alone.
#include "core/device/cuda/kernels.h"
#include "core/device/cuda/launch.h"

namespace trireme::device::cuda {
namespace {

constexpr unsigned deciding_threads = 1024;

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
  UpdateRule::Kind kind;
  bool momentum;
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

// Values [begin, end) as the whole of an aligned subtree of tree_sum: neighbours are added level by level; what has no
// neighbour is carried up.
__device__ double subtree(const double* values, std::size_t begin, std::size_t end) {
  double pending[64];  // by level; a level is taken where its bit of `seen` is set
  std::size_t seen = 0;
  for (std::size_t i = begin; i < end; ++i, ++seen) {
    double sum = values[i];
    int level = 0;
    for (; ((seen >> level) & 1u) != 0; ++level) sum = pending[level] + sum;
    pending[level] = sum;
  }
  double total = 0;
  bool first = true;
  for (int level = 0; level < 64; ++level) {
    if (((seen >> level) & 1u) == 0) continue;
    total = first ? pending[level] : pending[level] + total;
    first = false;
  }
  return total;
}

__global__ void decide_kernel(Decision d) {
  TRIREME_SHARED(double, sums, deciding_threads);
  TRIREME_SHARED(int, finite, deciding_threads);
  std::size_t span = 1;  // values of a thread: the least power of two that covers all
  while (span * deciding_threads < d.tiles) span *= 2;
  const std::size_t begin = threadIdx.x * span;
  const std::size_t end = begin + span < d.tiles ? begin + span : d.tiles;
  sums[threadIdx.x] = begin < end ? subtree(d.tile_squares, begin, end) : 0.0;
  int all = 1;
  for (std::size_t i = threadIdx.x; i < d.checks; i += deciding_threads) all &= is_finite(d.buffer_checks[i]) ? 1 : 0;
  finite[threadIdx.x] = all;
  for (unsigned distance = 1; distance < deciding_threads; distance *= 2) {
    __syncthreads();
    if (threadIdx.x % (2 * distance) == 0) {
      sums[threadIdx.x] += sums[threadIdx.x + distance];
      finite[threadIdx.x] &= finite[threadIdx.x + distance];
    }
  }
  if (threadIdx.x != 0) return;
  const bool rest_finite = finite[0] != 0 && (d.total_loss == nullptr || is_finite(*d.total_loss));
  *d.factors = begin_update(d.rule, sums[0], rest_finite, *d.total_weight, d.n, *d.block, d.norm);
}

__global__ void update_kernel(Pass p) {
  const UpdateFactors decayed = *p.factors;
  if (!decayed.apply) return;
  const UpdateFactors plain = without_decay(decayed, p.kind);
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (std::size_t i = first; i < p.count; i += stride) {
    const UpdateFactors& f = i >= p.decay_begin && i < p.decay_end ? decayed : plain;
    if (p.kind == UpdateRule::Kind::adamw) {
      adamw_step(p.parameters[i], p.gradients[i], p.moment1[i], p.moment2[i], f);
    } else if (p.momentum) {
      momentum_step(p.parameters[i], p.gradients[i], p.moment1[i], f);
    } else {
      sgd_step(p.parameters[i], p.gradients[i], f);
    }
  }
  for (std::size_t i = first; i < p.buffer_count; i += stride) p.buffers[i] = p.buffer_sums[i] * p.buffer_factor;
}

UpdateFactors* update_factors = nullptr;  // on the host; set before the first update

}  // namespace

void set_update_scratch(UpdateFactors* factors) { update_factors = factors; }

void update(const UpdateArguments& a, Stream& stream) {
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
                          update_factors};
  launch("update (decide)", decide_kernel, 1, deciding_threads, stream, decision);
  const Pass pass{a.rule.kind,          a.rule.momentum != 0, a.parameters.data(), a.gradients.data(), a.moment1.data(),
                  a.moment2.data(),     a.parameters.size(),  a.decayed.begin,     a.decayed.end,      a.buffers.data(),
                  a.buffer_sums.data(), a.buffers.size(),     a.buffer_factor,     update_factors};
  launch("update", update_kernel, blocks_for(a.parameters.size()), threads_per_block, stream, pass);
}

}  // namespace trireme::device::cuda
