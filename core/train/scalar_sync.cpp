// Scalars up the tree.
#include "core/train/scalar_sync.h"

namespace trireme::train {

ScalarSync::ScalarSync(comm::Group group, std::uint32_t locals, std::size_t metrics, bool same_world,
                       const std::shared_ptr<device::Device>& device)
    : group_(std::move(group)),
      device_(device),
      carry_(locals),
      count_(2 + 2 * metrics),
      same_world_(same_world),
      memory_(device, carry_.arenas() * count_ * sizeof(double)),
      zeros_(device, count_ * sizeof(double)),
      sums_(arena(0)) {}

std::span<double> ScalarSync::arena(std::uint32_t index) const {
  return memory_.span<double>().subspan(index * count_, count_);
}

void ScalarSync::add(plugin::Model& model, const plugin::Loss& loss, bool last, device::Stream& compute) {
  const std::uint32_t taken = carry_.take();
  const std::span<double> into = arena(taken);
  std::size_t i = 0;
  const auto put = [&](autograd::Handle handle) {
    compute.copy(std::as_writable_bytes(into.subspan(i++, 1)), std::as_bytes(model.value(handle).span<double>()));
  };
  put(loss.sum), put(loss.weight);
  for (const plugin::Weighted& metric : model.metrics()) put(metric.sum), put(metric.weight);
  finish(taken, last, compute);
}

void ScalarSync::add_nothing(bool last, device::Stream& compute) {
  const std::uint32_t taken = carry_.take();
  const std::span<double> into = arena(taken);
  compute.copy(std::as_writable_bytes(into), zeros_.span<const std::byte>());
  finish(taken, last, compute);
}

void ScalarSync::finish(std::uint32_t taken, bool last, device::Stream& compute) {
  const device::Kernels& kernels = device_->kernels();
  if (!last) {
    carry_.fold(taken, [&](std::uint32_t into, std::uint32_t other) {
      kernels.add_f64(arena(into), arena(into), arena(other), compute);
    });
    return;
  }
  device::Stream stream = group_.stream();
  stream.wait(compute.record());  // the scalars were written on the compute stream
  const auto chain = carry_.last(taken);
  for (std::size_t k = 1; k < chain.size(); ++k)
    kernels.add_f64(arena(chain[k]), arena(chain[k]), arena(chain[k - 1]), stream);
  sums_ = arena(chain.back());
  done_ = same_world_ ? group_.all_reduce(sums_) : group_.tree_reduce(sums_);
}

}  // namespace trireme::train
