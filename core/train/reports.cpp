// Reports in flight.
#include "core/train/reports.h"

#include <cmath>
#include <cstring>

namespace trireme::train {

Reports::Reports(std::size_t metrics, std::shared_ptr<device::Device> device)
    : device_(std::move(device)), sums_(2 + 2 * metrics), norm_(device_, sizeof(double)), metrics_(metrics) {
  for (Slot& slot : slots_)
    slot.memory = device::PinnedBuffer(device_, (sums_ + 1) * sizeof(double) + sizeof(device::StepBlock));
}

void Reports::stage(std::uint64_t step, std::span<const double> sums, const device::StepBlock* block,
                    device::Stream& compute) {
  Slot& slot = slots_[staged_++ % slots_.size()];
  slot.step = step;
  const std::span<std::byte> memory = slot.memory.span<std::byte>();
  const std::size_t scalars = sums_ * sizeof(double);
  compute.copy(memory.first(scalars), std::as_bytes(sums));
  compute.copy(memory.subspan(scalars, sizeof(double)), norm_.span<std::byte>());
  compute.copy(memory.last(sizeof(device::StepBlock)), std::as_bytes(std::span(block, 1)));
  slot.done = compute.record();
}

std::optional<Report> Reports::fetch(std::size_t keep) {
  if (staged_ - fetched_ <= keep) return std::nullopt;
  Slot& slot = slots_[fetched_++ % slots_.size()];
  slot.done.synchronize();
  device_->throw_fault();
  const std::span<const double> sums = slot.memory.span<double>().first(sums_);
  device::StepBlock block;
  std::memcpy(&block, slot.memory.span<std::byte>().last(sizeof block).data(), sizeof block);
  const auto mean = [](double sum, double weight) { return weight == 0 ? std::nan("") : sum / weight; };
  for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i] = mean(sums[2 + 2 * i], sums[3 + 2 * i]);
  return Report{
      slot.step,   mean(sums[0], sums[1]), sums[1], metrics_, slot.memory.span<double>()[sums_], block.updates,
      block.skips, block.halted != 0};
}

}  // namespace trireme::train
