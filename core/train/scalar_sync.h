// Loss, weight and metrics as f64 sums along the same tree as gradients; used by training and evaluation.
#pragma once

#include <cstdint>
#include <span>

#include "core/comm/group.h"
#include "core/device/device.h"
#include "core/plugin/model.h"
#include "core/train/carry.h"

namespace trireme::train {

// Layout of the sums: loss sum, loss weight, then sum and weight of each metric.
class ScalarSync {
 public:
  ScalarSync(comm::Group group, std::uint32_t locals, std::size_t metrics, bool same_world,
             const std::shared_ptr<device::Device>& device);

  // Takes the scalars of one micro-batch (those of `last` leave at once on the communication stream).
  void add(plugin::Model& model, const plugin::Loss& loss, bool last, device::Stream& compute);
  // A micro-batch without rows counts as zero.
  void add_nothing(bool last, device::Stream& compute);
  // Device sums over all micro-batches of all ranks; valid once done() is, until the next `last`.
  [[nodiscard]] std::span<double> sums() const { return sums_; }
  [[nodiscard]] const device::Event& done() const { return done_; }
  [[nodiscard]] const double* loss() const { return sums_.data(); }
  [[nodiscard]] const double* weight() const { return sums_.data() + 1; }

 private:
  void finish(std::uint32_t arena, bool last, device::Stream& compute);
  [[nodiscard]] std::span<double> arena(std::uint32_t index) const;

  comm::Group group_;
  std::shared_ptr<device::Device> device_;
  Carry carry_;
  std::size_t count_;
  bool same_world_;
  device::Buffer memory_;
  device::Buffer zeros_;  // as long as the sums
  std::span<double> sums_;
  device::Event done_;
};

}  // namespace trireme::train
