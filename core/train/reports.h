// What the host learns of a step, a step late: loss, metrics, norm and the step block's device half, copied to pinned
// memory in stream order, so that nothing waits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/device/device.h"
#include "core/device/step_block.h"

namespace trireme::train {

struct Report {
  std::uint64_t step = 0;
  double loss = 0, weight = 0;      // loss: sum ÷ weight
  std::span<const double> metrics;  // sums ÷ weights, in order; NaN where the weight is 0
  double grad_norm = 0;
  std::uint64_t updates = 0, skips = 0;
  bool halted = false;
};

class Reports {
 public:
  Reports(std::size_t metrics, std::shared_ptr<device::Device> device);
  // Where the update writes the gradient norm.
  [[nodiscard]] double* norm() const { return static_cast<double*>(norm_.data()); }
  void stage(std::uint64_t step, std::span<const double> sums, const device::StepBlock* block, device::Stream& compute);
  // The oldest report not yet fetched, unless fewer than `keep` are under way; valid until the next stage(). Throws
  // what a kernel of that step could not throw itself.
  [[nodiscard]] std::optional<Report> fetch(std::size_t keep);

 private:
  struct Slot {
    std::uint64_t step = 0;
    device::PinnedBuffer memory;  // sums, norm, block
    device::Event done;
  };
  std::shared_ptr<device::Device> device_;
  std::size_t sums_;
  device::Buffer norm_;
  std::array<Slot, 3> slots_;
  std::uint64_t staged_ = 0, fetched_ = 0;
  std::vector<double> metrics_;
};

}  // namespace trireme::train
