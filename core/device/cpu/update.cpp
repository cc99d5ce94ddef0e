// The fused update on the CPU: the scalars once, then one pass over the tiles.
#include <algorithm>

#include "core/base/threads.h"
#include "core/device/cpu/kernels.h"
#include "core/device/cpu/tile.h"

namespace trireme::device::cpu {

namespace {

void step(const UpdateArguments& a, Range part, const UpdateFactors& factors) {
  if (part.begin >= part.end) return;
  float* parameters = a.parameters.data() + part.begin;
  const float* gradients = a.gradients.data() + part.begin;
  if (a.rule.kind == UpdateRule::Kind::adamw)
    adamw(parameters, gradients, a.moment1.data() + part.begin, a.moment2.data() + part.begin, part.size(), factors);
  else if (a.rule.momentum != 0)
    momentum(parameters, gradients, a.moment1.data() + part.begin, part.size(), factors);
  else
    sgd(parameters, gradients, part.size(), factors);
}

void run(const UpdateArguments& a) {
  const bool rest_finite = std::all_of(a.buffer_checks.begin(), a.buffer_checks.end(), is_finite) &&
                           (a.total_loss == nullptr || is_finite(*a.total_loss));
  const UpdateFactors factors =
      begin_update(a.rule, tree_sum(a.tile_squares), rest_finite, *a.total_weight, a.n, *a.block, a.norm);
  if (!factors.apply) return;
  const UpdateFactors plain = without_decay(factors, a.rule.kind);
  parallel_for(a.tile_squares.size(), tile_grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t tile = begin; tile < end; ++tile) {
      const Range part{tile * tile_elements, std::min<std::size_t>((tile + 1) * tile_elements, a.parameters.size())};
      const std::uint64_t from = std::clamp(a.decayed.begin, part.begin, part.end);
      const std::uint64_t to = std::clamp(a.decayed.end, from, part.end);
      step(a, {part.begin, from}, plain);
      step(a, {from, to}, factors);
      step(a, {to, part.end}, plain);
    }
  });
  for (std::size_t i = 0; i < a.buffers.size(); ++i) a.buffers[i] = a.buffer_sums[i] * a.buffer_factor;
}

}  // namespace

// The arguments are larger than a task: on a stream that is a thread the caller waits for it.
void update(const UpdateArguments& arguments, Stream& stream) {
  check_update(arguments);
  stream.run([&arguments] { run(arguments); });
  stream.synchronize();
}

}  // namespace trireme::device::cpu
