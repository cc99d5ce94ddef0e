// The three orders of samples.
#include "io/feed/sampler.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/base/error.h"
#include "io/dataset/permutation.h"

namespace trireme::io {
namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};

// Numbers of samples that 32 bits hold.
constexpr bool is_narrow(std::uint64_t samples) { return samples >> 32 == 0; }

class Order {
 public:
  virtual ~Order() = default;
  [[nodiscard]] virtual std::int64_t at(std::uint64_t epoch, std::uint64_t offset) = 0;
};

class SameOrder final : public Order {
 public:
  [[nodiscard]] std::int64_t at(std::uint64_t /*epoch*/, std::uint64_t offset) override {
    return static_cast<std::int64_t>(offset);
  }
};

// Neighbouring epochs (or windows) take turns in two places, so a batch that straddles them costs nothing.
template <class Index>
class GlobalOrder final : public Order {
 public:
  GlobalOrder(std::uint64_t seed, std::uint64_t samples) : seed_(seed), samples_(samples) {}
  [[nodiscard]] std::int64_t at(std::uint64_t epoch, std::uint64_t offset) override {
    Kept& kept = kept_[epoch % 2];
    if (kept.epoch != epoch) {
      kept.samples.resize(samples_);
      std::iota(kept.samples.begin(), kept.samples.end(), Index{0});
      permute(std::span(kept.samples), shuffle_key(seed_, epoch, Shuffled::samples));
      kept.epoch = epoch;
    }
    return static_cast<std::int64_t>(kept.samples[offset]);
  }

 private:
  struct Kept {
    std::uint64_t epoch = never;
    std::vector<Index> samples;
  };
  std::uint64_t seed_, samples_;
  std::array<Kept, 2> kept_;
};

class BlockOrder final : public Order {
 public:
  BlockOrder(const Dataset& dataset, std::uint64_t seed, std::int64_t window)
      : seed_(seed), window_(static_cast<std::size_t>(window)) {
    for (const DataFile& file : dataset.files()) {
      const std::int64_t rows = dataset.block_rows(file);
      for (std::int64_t first = 0; first < file.samples; first += rows) bounds_.push_back(file.first_sample + first);
    }
    bounds_.push_back(dataset.samples());
  }

  [[nodiscard]] std::int64_t at(std::uint64_t epoch, std::uint64_t offset) override {
    Epoch& kept = epochs_[epoch % 2];
    if (kept.number != epoch) arrange(kept, epoch);
    const auto after = std::upper_bound(kept.starts.begin(), kept.starts.end(), offset);
    const auto index = static_cast<std::size_t>(after - kept.starts.begin()) - 1;
    Window& window = kept.windows[index % 2];
    if (window.index != index) mix(kept, window, index);
    return static_cast<std::int64_t>(window.samples[offset - kept.starts[index]]);
  }

 private:
  struct Window {
    std::uint64_t index = never;
    std::vector<std::uint64_t> samples;
  };
  struct Epoch {
    std::uint64_t number = never;
    std::vector<std::uint32_t> chunks;
    std::vector<std::uint64_t> starts;  // offset of each window's first sample in the epoch
    std::array<Window, 2> windows;
  };

  [[nodiscard]] std::uint64_t rows_of(std::uint32_t chunk) const {
    return static_cast<std::uint64_t>(bounds_[chunk + 1] - bounds_[chunk]);
  }

  void arrange(Epoch& epoch, std::uint64_t number) const {
    epoch.number = number;
    epoch.chunks.resize(bounds_.size() - 1);
    std::iota(epoch.chunks.begin(), epoch.chunks.end(), 0u);
    permute(std::span(epoch.chunks), shuffle_key(seed_, number, Shuffled::chunks));
    epoch.starts.clear();
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < epoch.chunks.size(); ++i) {
      if (i % window_ == 0) epoch.starts.push_back(offset);
      offset += rows_of(epoch.chunks[i]);
    }
    for (Window& window : epoch.windows) window.index = never;
  }

  void mix(const Epoch& epoch, Window& window, std::size_t index) const {
    window.index = index;
    window.samples.clear();
    const std::size_t end = std::min((index + 1) * window_, epoch.chunks.size());
    for (std::size_t i = index * window_; i < end; ++i) {
      const std::uint32_t chunk = epoch.chunks[i];
      for (std::int64_t s = bounds_[chunk]; s < bounds_[chunk + 1]; ++s) {
        window.samples.push_back(static_cast<std::uint64_t>(s));
      }
    }
    permute(std::span(window.samples),
            shuffle_key(seed_, epoch.number, Shuffled::window, static_cast<std::uint32_t>(index)));
  }

  std::uint64_t seed_;
  std::size_t window_;
  std::vector<std::int64_t> bounds_;  // first sample of each chunk of all files, and the end
  std::array<Epoch, 2> epochs_;
};

std::unique_ptr<Order> make_order(const Dataset& dataset, std::uint64_t seed, Shuffle shuffle, std::int64_t window) {
  const auto samples = static_cast<std::uint64_t>(dataset.samples());
  switch (shuffle) {
    case Shuffle::none: return std::make_unique<SameOrder>();
    case Shuffle::block:
      if (window < 1) fail(ExitCode::usage, "data.window is {}, it must be at least 1 chunk", window);
      return std::make_unique<BlockOrder>(dataset, seed, window);
    case Shuffle::global: break;
  }
  if (is_narrow(samples)) return std::make_unique<GlobalOrder<std::uint32_t>>(seed, samples);
  return std::make_unique<GlobalOrder<std::uint64_t>>(seed, samples);
}

}  // namespace

std::uint64_t order_bytes(std::int64_t samples, Shuffle shuffle) {
  if (shuffle != Shuffle::global) return 0;  // a window's, a few thousand
  const auto n = static_cast<std::uint64_t>(samples);
  return 2 * n * (is_narrow(n) ? sizeof(std::uint32_t) : sizeof(std::uint64_t));
}

struct Sampler::State {
  std::uint64_t samples = 0;
  std::unique_ptr<Order> order;
};

Sampler::Sampler(const Dataset& dataset, std::uint64_t seed, Shuffle shuffle, std::int64_t window)
    : state_(std::make_unique<State>()) {
  state_->samples = static_cast<std::uint64_t>(dataset.samples());
  state_->order = make_order(dataset, seed, shuffle, window);
}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

std::int64_t Sampler::sample(std::uint64_t position) {
  return state_->order->at(position / state_->samples, position % state_->samples);
}
std::int64_t Sampler::samples() const { return static_cast<std::int64_t>(state_->samples); }

}  // namespace trireme::io
