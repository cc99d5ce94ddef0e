// Samples to device batches: one reader thread fills a pinned double buffer, a copy stream carries it into one of two
// device slots at fixed addresses, ahead of the step. On the CPU the model reads the pinned slots themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/device/device.h"
#include "core/device/stream.h"
#include "io/dataset/dataset.h"
#include "io/dataset/reader.h"
#include "io/feed/sampler.h"
#include "io/feed/transform.h"

namespace trireme::io {

// Positions [first, first + rows) of the sampler's line.
struct MicroBatch {
  std::uint64_t first = 0;
  std::int64_t rows = 0;
};
// The k-th micro-batch of this rank (k from 0), or none after the last. A pure function.
using Sequence = std::function<std::optional<MicroBatch>(std::uint64_t k)>;

struct FieldView {
  void* data = nullptr;  // device memory of the slot
  Shape shape;           // (rows, …)
  Dtype dtype = Dtype::f32;
};
struct Batch {
  MicroBatch at;
  std::uint32_t slot = 0;
  std::span<const FieldView> fields;  // of the slot, in the order of Transforms::fields
};

struct FeedOptions {
  std::int64_t max_rows = 0;  // of a micro-batch
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;
  std::int64_t classes = 0;  // labels must be below; 0: unchecked
  std::string label = "label";
};

// next() and release() on the compute thread. What the reader meets (bad data, I/O) is thrown by next() as Error with
// file, dataset and sample. NaN and Inf in a float field are refused so, and labels outside [0, classes).
class Feed {
 public:
  Feed(std::shared_ptr<const Dataset> dataset, std::unique_ptr<Reader> reader, Sampler sampler, Transforms transforms,
       Sequence sequence, const FeedOptions& options, std::shared_ptr<device::Device> device);
  ~Feed();  // ends the reader at once, whatever it was doing

  // The next micro-batch in its slot; `stream` waits for its copy. None after the last.
  [[nodiscard]] std::optional<Batch> next(device::Stream& stream);
  // The slot was read by all work queued on `stream` so far: it may be overwritten after that.
  void release(const Batch& batch, device::Stream& stream);
  [[nodiscard]] double waited() const;  // seconds next() waited, all in all
  [[nodiscard]] std::uint64_t blocks_read() const;
  [[nodiscard]] std::uint64_t pinned_bytes() const;  // host memory of the slots

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::io
