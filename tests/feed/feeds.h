// Feeds over small files, their batches as values.
#pragma once

#include <chrono>
#include <cstring>
#include <ostream>
#include <thread>

#include "io/feed/feed.h"
#include "tests/base/folder.h"
#include "tests/dataset/data_files.h"
#include "tests/hdf5/values.h"

namespace trireme::test {

// Micro-batch v of step s holds positions s·B + v·(B/V) …; rank r of W computes the V/W neighbouring ones from r·V/W on.
inline io::Sequence sequence_of(std::uint64_t batch, std::uint64_t micro_batches, std::uint64_t rank,
                                std::uint64_t world, std::uint64_t first_step, std::uint64_t steps) {
  return [=](std::uint64_t k) -> std::optional<io::MicroBatch> {
    const std::uint64_t here = micro_batches / world, rows = batch / micro_batches;
    const std::uint64_t step = first_step + k / here;
    if (step == steps) return std::nullopt;
    return io::MicroBatch{step * batch + (rank * here + k % here) * rows, static_cast<std::int64_t>(rows)};
  };
}

struct Taken {
  io::MicroBatch at;
  std::vector<std::vector<std::byte>> fields;
  friend bool operator==(const Taken& a, const Taken& b) {
    return a.at.first == b.at.first && a.at.rows == b.at.rows && a.fields == b.fields;
  }
  friend void PrintTo(const Taken& taken, std::ostream* out) {
    *out << "micro-batch of " << taken.at.rows << " from position " << taken.at.first;
  }
};

// The bytes of a batch's rows; on the CPU device memory can be read.
inline Taken bytes_of_batch(const io::Batch& batch) {
  Taken taken{batch.at, {}};
  for (const io::FieldView& view : batch.fields) {
    const auto size = static_cast<std::size_t>(view.shape.elements()) * size_of(view.dtype);
    const auto* const data = static_cast<const std::byte*>(view.data);
    taken.fields.emplace_back(data, data + size);
  }
  return taken;
}

struct FeedSetup {
  std::shared_ptr<const io::Dataset> data;
  std::uint64_t seed = 1;
  io::Shuffle shuffle = io::Shuffle::global;
  std::int64_t window = 4;
  std::vector<std::string> transforms = {};
  bool random = true;
  io::FeedOptions options = {};

  [[nodiscard]] std::unique_ptr<io::Feed> make(io::Sequence sequence,
                                               std::unique_ptr<io::Reader> reader = nullptr) const {
    if (!reader) reader = io::make_hdf5_reader(*data);
    return std::make_unique<io::Feed>(data, std::move(reader), io::Sampler(*data, seed, shuffle, window),
                                      io::Transforms(transforms, data->fields(), seed, random), std::move(sequence),
                                      options, device::make_cpu());
  }
};

// All batches to the end, each released at once.
inline std::vector<Taken> take_all(io::Feed& feed, device::Stream& stream) {
  std::vector<Taken> all;
  while (const auto batch = feed.next(stream)) {
    all.push_back(bytes_of_batch(*batch));
    feed.release(*batch, stream);
  }
  return all;
}

// Hands blocks on, sleeping or failing on the way.
class SlowReader final : public io::Reader {
 public:
  SlowReader(std::unique_ptr<io::Reader> inner, std::chrono::milliseconds sleep, std::int64_t failing_row = -1)
      : inner_(std::move(inner)), sleep_(sleep), failing_row_(failing_row) {}
  void read(std::size_t file, std::int64_t first, std::int64_t rows, io::Block& block) override {
    std::this_thread::sleep_for(sleep_);
    if (failing_row_ >= first && failing_row_ < first + rows) {
      throw Error(ExitCode::io, "the disk of row " + std::to_string(failing_row_) + " is gone");
    }
    inner_->read(file, first, rows, block);
  }

 private:
  std::unique_ptr<io::Reader> inner_;
  std::chrono::milliseconds sleep_;
  std::int64_t failing_row_;
};

}  // namespace trireme::test
