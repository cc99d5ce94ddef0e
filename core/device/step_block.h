// What kernels read of a step. Lies on the device; nothing that changes from step to step is passed by value, so a
// recorded step can be replayed.
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/philox.h"
#include "core/device/device.h"

namespace trireme::device {

// Same layout as trireme_step_block of abi.h (checked in core/plugin).
struct StepBlock {
  // Host half: copied in stream order before each micro-batch.
  std::uint64_t step = 0, seed = 0;
  std::uint32_t micro_batch = 0, phase = 0;
  // Device half: written by the update alone; part of the checkpoint.
  std::uint64_t updates = 0, skips = 0;         // applied; skipped for NaN, Inf or weight 0
  double beta1_product = 1, beta2_product = 1;  // β₁^updates, β₂^updates (Adam's bias correction)
  float loss_scale = 1;
  std::uint32_t good_steps = 0;            // since the last change of loss_scale
  std::uint32_t halted = 0, reserved = 0;  // 1: a non-finite gradient was met; later updates skip
};

// The key of the op with this ordinal in the running micro-batch. Evaluation and training never share a key:
// ordinals of evaluation start at 2^31.
TRIREME_HOST_DEVICE constexpr RandomKey op_key(const StepBlock& block, std::uint32_t ordinal) {
  return random_key(block.seed, Purpose::model, block.step, block.micro_batch, ordinal);
}

// One StepBlock on the device, its host half staged through a pinned ring.
class StepBlockRing {
 public:
  explicit StepBlockRing(std::shared_ptr<Device> device);
  ~StepBlockRing();
  // Queues the copy of the host half on `stream`.
  void stage(std::uint64_t step, std::uint64_t seed, std::uint32_t micro_batch, std::uint32_t phase, Stream& stream);
  [[nodiscard]] StepBlock* on_device() const;
  // Device half to and from the host, in stream order and waiting: checkpoints and restarts only.
  [[nodiscard]] StepBlock read(Stream& stream) const;
  void write(const StepBlock& block, Stream& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::device
