// Fills the fields of one micro-batch in host memory: samples by the sampler's line, read in the order they lie in,
// checked and transformed. Private to io/feed; one thread but for stop() and blocks_read().
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "io/feed/feed.h"

namespace trireme::io {

class Filler {
 public:
  // Throws Error(usage) where options.label names no integer field although options.classes is set.
  Filler(const Dataset& dataset, std::unique_ptr<Reader> reader, Sampler sampler, Transforms transforms,
         const FeedOptions& options);

  [[nodiscard]] std::span<const Field> fields() const { return transforms_.fields(); }
  // `places`: memory of each field for at least at.rows samples. False when it was stopped on the way.
  [[nodiscard]] bool fill(const MicroBatch& at, std::span<const std::span<std::byte>> places);
  void stop() { stopping_ = true; }
  [[nodiscard]] const std::atomic<bool>& stopping() const { return stopping_; }
  [[nodiscard]] std::uint64_t blocks_read() const { return blocks_read_; }

 private:
  struct Drawn {
    std::int64_t sample;
    std::uint32_t row;  // in the micro-batch
  };
  void place(const Block& block, const Drawn& drawn, std::uint64_t position,
             std::span<const std::span<std::byte>> places) const;
  void check(const DataFile& file, std::size_t field, std::int64_t sample, std::span<const std::byte> values) const;

  const Dataset& dataset_;
  BlockCache cache_;
  Sampler sampler_;
  Transforms transforms_;
  FeedOptions options_;
  std::size_t label_;                                    // index of the field with labels; number of fields: none
  std::vector<std::size_t> stored_bytes_, batch_bytes_;  // of one sample of each field
  std::vector<Drawn> drawn_;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> blocks_read_ = 0;
};

}  // namespace trireme::io
