// StepBlockRing: the step's host half travels through a ring of pinned slots.
#include "core/device/step_block.h"

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace trireme::device {

static_assert(std::is_standard_layout_v<StepBlock> && std::is_trivially_copyable_v<StepBlock>);

namespace {
constexpr std::size_t host_half = offsetof(StepBlock, updates);
constexpr std::size_t slots = 64;
}  // namespace

struct StepBlockRing::State {
  explicit State(std::shared_ptr<Device> given)
      : device(std::move(given)), block(device, sizeof(StepBlock)), ring(device, slots * sizeof(StepBlock)) {}

  // A slot whose last copy has left it.
  StepBlock& slot() {
    used[next].synchronize();
    return ring.span<StepBlock>()[next];
  }
  void sent(Stream& stream) {
    used[next] = stream.record();
    next = (next + 1) % slots;
  }
  [[nodiscard]] std::span<std::byte> on_device() const { return block.span<std::byte>(); }

  std::shared_ptr<Device> device;
  Buffer block;
  PinnedBuffer ring;
  std::array<Event, slots> used{};
  std::size_t next = 0;
};

StepBlockRing::StepBlockRing(std::shared_ptr<Device> device) : state_(std::make_unique<State>(std::move(device))) {
  Stream stream = state_->device->compute_stream();
  write(StepBlock{}, stream);
}
StepBlockRing::~StepBlockRing() = default;

void StepBlockRing::stage(std::uint64_t step, std::uint64_t seed, std::uint32_t micro_batch, std::uint32_t phase,
                          Stream& stream) {
  StepBlock& slot = state_->slot();
  slot.step = step;
  slot.seed = seed;
  slot.micro_batch = micro_batch;
  slot.phase = phase;
  stream.copy(state_->on_device().first(host_half), std::as_bytes(std::span(&slot, 1)).first(host_half));
  state_->sent(stream);
}

StepBlock* StepBlockRing::on_device() const { return static_cast<StepBlock*>(state_->block.data()); }

StepBlock StepBlockRing::read(Stream& stream) const {
  StepBlock& slot = state_->slot();
  stream.copy(std::as_writable_bytes(std::span(&slot, 1)), state_->on_device());
  stream.synchronize();
  return slot;
}

void StepBlockRing::write(const StepBlock& block, Stream& stream) {
  StepBlock& slot = state_->slot();
  slot = block;
  stream.copy(state_->on_device().subspan(host_half), std::as_bytes(std::span(&slot, 1)).subspan(host_half));
  stream.synchronize();
}

}  // namespace trireme::device
