// Gradients up the tree.
#include "core/train/grad_sync.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/fault.h"
#include "core/device/doorbell.h"

namespace trireme::train {

GradSync::GradSync(comm::Group group, const Plan& plan, const plugin::Layout& layout, std::size_t metrics,
                   std::uint64_t bucket_bytes, std::shared_ptr<device::Device> device)
    : group_(group),
      plan_(plan),
      device_(std::move(device)),
      parameter_elements_(layout.parameter_elements),
      elements_(layout.parameter_elements + layout.buffer_elements),
      carry_(plan.locals),
      scalars_(group, plan.locals, metrics, plan.same_world, device_),
      memory_(device_, carry_.arenas() * elements_ * sizeof(float)),
      squares_(device_, tiles_of(elements_) * sizeof(double)) {
  // Backward makes gradients from the last declared parameter to the first: buckets travel from the end of each group.
  // A cut falls where a parameter begins if one does in the bucket's last three quarters: what lies below it is ready
  // later.
  const std::uint64_t size = std::max(tile_elements, round_up(bucket_bytes / sizeof(float), tile_elements));
  const auto cut = [&](Range group_range) {
    for (std::uint64_t end = group_range.end; end > group_range.begin;) {
      std::uint64_t begin = end - std::min(size, end - group_range.begin);
      std::uint64_t best = end;
      for (const plugin::Parameter& parameter : layout.parameters) {
        const std::uint64_t at = round_up(parameter.range.begin, tile_elements);
        if (at > begin && at <= end - std::min(size / 4, end) && at < best) best = at;
      }
      if (begin > group_range.begin && best < end) begin = best;
      buckets_.push_back({{begin, end}, 0, 0, {}});
      end = begin;
    }
  };
  cut({0, layout.decayed_elements});
  cut({layout.decayed_elements, layout.parameter_elements});
  cut({layout.parameter_elements, elements_});

  for (const plugin::Parameter& parameter : layout.parameters) pieces_.push_back({parameter.range, 0});
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.range.begin < b.range.begin; });
  for (Bucket& bucket : buckets_)
    for (const Piece& piece : pieces_) {
      const std::uint64_t begin = std::max(bucket.range.begin, piece.range.begin);
      const std::uint64_t end = std::min(bucket.range.end, piece.range.end);
      if (begin < end) bucket.elements += end - begin;
    }
}

std::span<float> GradSync::arena(std::uint32_t index, Range range) const {
  return memory_.span<float>().subspan(index * elements_ + range.begin, range.size());
}

std::span<double> GradSync::squares(Range range) const {
  return squares_.span<double>().subspan(range.begin / tile_elements, tiles_of(range.size()));
}

plugin::Model::Destination GradSync::begin(std::uint32_t local, device::Stream& compute) {
  compute_ = compute;
  local_ = local;
  arena_ = carry_.take();
  for (Piece& piece : pieces_) piece.announced = 0;
  if (local_ + 1 == plan_.locals) {
    chain_ = carry_.last(arena_);
    left_ = 0;
    for (Bucket& bucket : buckets_) bucket.missing = bucket.elements;
  }
  return {arena(arena_, {0, parameter_elements_}), arena(arena_, {parameter_elements_, elements_})};
}

void GradSync::scalars(plugin::Model& model, const plugin::Loss& loss) {
  scalars_.add(model, loss, local_ + 1 == plan_.locals, compute_);
}

void GradSync::count(Range range) {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), range.begin,
                                [](std::uint64_t at, const Piece& p) { return at < p.range.end; });
  for (; piece != pieces_.end() && piece->range.begin < range.end; ++piece) {
    const std::uint64_t begin = std::max(range.begin, piece->range.begin), end = std::min(range.end, piece->range.end);
    if (begin >= end) continue;
    piece->announced += end - begin;
    if (piece->announced > piece->range.size())
      fail(ExitCode::internal, "gradient_ready: elements [{}, {}) of the gradient arena were announced twice", begin,
           end);
    if (local_ + 1 != plan_.locals) continue;
    for (Bucket& bucket : buckets_) {
      const std::uint64_t from = std::max(begin, bucket.range.begin), to = std::min(end, bucket.range.end);
      if (from < to) bucket.missing -= to - from;
    }
  }
}

void GradSync::ready(Range range) {
  count(range);
  if (local_ + 1 == plan_.locals) leave_full();
}

void GradSync::leave_full() {
  // The buffers' buckets have no announced elements; they leave in end().
  while (left_ < buckets_.size() && buckets_[left_].missing == 0 && buckets_[left_].range.begin < parameter_elements_) {
    leave(buckets_[left_++]);
    fault::point("between_buckets");
  }
}

// Down the whole chain on the communication stream, then across the ranks.
void GradSync::leave(Bucket& bucket) {
  const device::Kernels& kernels = device_->kernels();
  device::Stream stream = group_.stream();
  stream.wait(compute_.record());  // this range was written on the compute stream
  const bool across = group_.size() > 1;
  const std::span<double> tiles = squares(bucket.range);
  for (std::size_t k = 1; k < chain_.size(); ++k) {
    const bool last_add = k + 1 == chain_.size() && !across;
    kernels.add(arena(chain_[k], bucket.range), arena(chain_[k], bucket.range), arena(chain_[k - 1], bucket.range),
                last_add ? tiles : std::span<double>{}, stream);
  }
  const std::span<float> sum = arena(chain_.back(), bucket.range);
  if (across && plan_.same_world) {
    group_.all_reduce(sum);
    kernels.tile_squares(sum, tiles, stream);
  } else if (across) {
    group_.tree_reduce(sum, tiles);
  } else if (chain_.size() == 1) {
    kernels.tile_squares(sum, tiles, stream);
  }
  bucket.done = stream.record();
}

void GradSync::end() {
  const device::Kernels& kernels = device_->kernels();
  for (Piece& piece : pieces_) {
    if (piece.announced == piece.range.size()) continue;
    if (piece.announced != 0)
      fail(
          ExitCode::internal,
          "gradient_ready: {} of the {} elements from {} on of the gradient arena were announced; announce all or none",
          piece.announced, piece.range.size(), piece.range.begin);
    kernels.fill(arena(arena_, piece.range), 0.0f, compute_);
    count(piece.range);
  }
  if (local_ + 1 == plan_.locals) {
    leave_full();
    while (left_ < buckets_.size()) leave(buckets_[left_++]);
    return;
  }
  carry_.fold(arena_, [&](std::uint32_t into, std::uint32_t other) {
    const Range all{0, elements_};
    kernels.add(arena(into, all), arena(into, all), arena(other, all), {}, compute_);
  });
}

optim::Reduced GradSync::wait(device::Stream& compute, double n) {
  const double start = device::seconds_now();
  compute.wait(buckets_.back().done);  // the stream runs in order: all earlier buckets and the scalars are done
  waited_ += device::seconds_now() - start;
  const std::uint32_t sum = chain_.back();
  const Range parameters{0, parameter_elements_}, buffers{parameter_elements_, elements_};
  return {arena(sum, parameters),
          squares(parameters),
          buffers.empty() ? std::span<const double>{} : squares(buffers),
          arena(sum, buffers),
          1.0f / static_cast<float>(plan_.micro_batches),
          scalars_.weight(),
          scalars_.loss(),
          n};
}

}  // namespace trireme::train
