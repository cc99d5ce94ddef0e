// Carries gradients and new buffers of each micro-batch up the tree, bucket by bucket while backward still runs. Owns
// the gradient arenas; the only user of the group inside a step besides Status.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/comm/group.h"
#include "core/device/device.h"
#include "core/optim/optimizer.h"
#include "core/plugin/model.h"
#include "core/train/carry.h"
#include "core/train/plan.h"
#include "core/train/scalar_sync.h"

namespace trireme::train {

class GradSync {
 public:
  GradSync(comm::Group group, const Plan& plan, const plugin::Layout& layout, std::size_t metrics,
           std::uint64_t bucket_bytes, std::shared_ptr<device::Device> device);

  // Starts local micro-batch i; the gradients and new buffers go where it says.
  [[nodiscard]] plugin::Model::Destination begin(std::uint32_t local, device::Stream& compute);
  // First bucket: right after the loss, before backward.
  void scalars(plugin::Model& model, const plugin::Loss& loss);
  // A range of gradients is final. In the last local micro-batch full buckets leave, in one fixed order.
  void ready(Range range);
  // Ends the micro-batch: parameters without gradient count as zero; new buffers go along.
  void end();
  // `compute` waits for all of it; `n` is the weight of one full micro-batch.
  [[nodiscard]] optim::Reduced wait(device::Stream& compute, double n);

  [[nodiscard]] std::span<const double> scalar_sums() const { return scalars_.sums(); }
  [[nodiscard]] double waited() const { return waited_; }  // seconds, all in all
  // Done once bucket i of this step is reduced (tests of overlap).
  [[nodiscard]] const device::Event& bucket_done(std::size_t i) const { return buckets_[i].done; }
  [[nodiscard]] std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    Range range;                 // of the arena: parameters, then buffers
    std::uint64_t elements = 0;  // that must be ready: padding is not announced
    std::uint64_t missing = 0;
    device::Event done;
  };
  struct Piece {  // of a parameter
    Range range;
    std::uint64_t announced = 0;
  };
  void leave(Bucket& bucket);
  void count(Range range);
  void leave_full();
  [[nodiscard]] std::span<float> arena(std::uint32_t index, Range range) const;
  [[nodiscard]] std::span<double> squares(Range range) const;

  comm::Group group_;
  Plan plan_;
  std::shared_ptr<device::Device> device_;
  std::uint64_t parameter_elements_, elements_;
  Carry carry_;
  ScalarSync scalars_;
  device::Buffer memory_, squares_;
  std::vector<Bucket> buckets_;  // in the order in which they travel
  std::vector<Piece> pieces_;    // by begin
  device::Stream compute_{};
  std::uint32_t local_ = 0, arena_ = 0;
  std::span<const std::uint32_t> chain_;
  std::size_t left_ = 0;  // buckets that have left
  double waited_ = 0;
};

}  // namespace trireme::train
