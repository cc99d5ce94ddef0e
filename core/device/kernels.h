// The non-differentiable kernels of a step: update, tree add, fill, seed. Each device fills one table. All work is
// queued on the given stream; pointers are device memory; spans count elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/range.h"
#include "core/device/step_block.h"
#include "core/device/stream.h"

namespace trireme::device {

// Learning rate as a function of updates done, evaluated on the device (optim/schedule.h has the formula).
struct Schedule {
  double lr = 0, lr_end = 0;
  std::uint64_t warmup = 0, total = 0;  // updates; total 0: constant after warm-up
};

// What one update needs that stays the same all run long.
struct UpdateRule {
  enum class Kind : std::uint32_t { sgd, adamw } kind = Kind::sgd;
  Schedule schedule;
  double momentum = 0;  // sgd
  bool nesterov = false;
  double beta1 = 0, beta2 = 0, epsilon = 0;  // adamw
  double weight_decay = 0;                   // sgd: added to the gradient; adamw: decoupled
  double clip_norm = 0;                      // 0: none
};

// One fused pass over the arena. Skips (and counts a skip) where found_inf, halted or weight = 0.
struct UpdateArguments {
  UpdateRule rule;
  std::span<float> parameters;
  std::span<const float> gradients;       // tree sums, scaled by loss scale ÷ n
  std::span<float> moment1, moment2;      // moment1: sgd's velocity; moment2 empty for sgd
  Range decayed;                          // elements with weight decay: [0, end of the decayed group)
  std::span<const double> tile_squares;   // one per tile of the parameters
  std::span<const double> buffer_checks;  // tile sums of the reduced buffers: only asked whether finite
  std::span<float> buffers;               // become buffer_sums × buffer_factor; untouched by a skipped step
  std::span<const float> buffer_sums;
  float buffer_factor = 0;               // 1 ÷ V
  const double* total_weight = nullptr;  // tree sum of the loss's weights
  const double* total_loss = nullptr;    // tree sum of the loss: only asked whether finite; null: not asked
  double n = 1;                          // weight of one full micro-batch
  StepBlock* block = nullptr;
  double* norm = nullptr;  // out: global norm of the mean gradient before clipping; may be null
};

// Random numbers of the op with this ordinal: element i is number i of its stream (normal: of numbers 2i and 2i + 1).
enum class Distribution : std::int32_t { uniform = 0, normal, bits };  // as trireme_distribution
struct RandomFill {
  void* data = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::f32;  // f32 or f64; bits: i32
  Distribution distribution = Distribution::uniform;
  double a = 0, b = 1;  // uniform in [a, b); normal: mean, deviation
  const StepBlock* block = nullptr;
  std::uint32_t ordinal = 0;
};

// Throws Error(internal) with the sizes that disagree.
void check_update(const UpdateArguments& arguments);

struct Kernels {
  void (*update)(const UpdateArguments&, Stream&);
  // into[i] = left[i] + right[i] (either may alias into). `tile_squares`, if not empty, gets the f64 sum of squares
  // of each tile of the result; the spans then begin at a tile's start.
  void (*add)(std::span<float> into, std::span<const float> left, std::span<const float> right,
              std::span<double> tile_squares, Stream&);
  void (*add_f64)(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream&);
  // f64 sum of squares of each tile.
  void (*tile_squares)(std::span<const float> values, std::span<double> squares, Stream&);
  void (*scale)(std::span<float> values, float factor, Stream&);
  void (*fill)(std::span<float> values, float value, Stream&);
  // What backward begins with: loss scale ÷ n, the scale read from `block` (null: 1) where the stream runs. f64 or f32.
  void (*seed)(void* gradient, Dtype dtype, const StepBlock* block, double n, Stream&);
  void (*random)(const RandomFill& fill, Stream&);
};

// A tile's sum of squares: eight interleaved f64 partial sums, added pairwise: one order on every device.
// (element i goes to partial i mod 8.) Then tiles are summed by tree_sum, one fixed binary tree.
[[nodiscard]] double tree_sum(std::span<const double> values);

}  // namespace trireme::device
