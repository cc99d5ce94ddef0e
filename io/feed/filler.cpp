// Samples into a micro-batch.
#include "io/feed/filler.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/dataset/layout.h"
#include "io/feed/check.h"

namespace trireme::io {
namespace {

std::size_t label_field(const Dataset& dataset, const FeedOptions& options) {
  const std::span<const Field> fields = dataset.fields();
  if (options.classes == 0) return fields.size();
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == options.label; });
  if (found == fields.end()) {
    fail(ExitCode::usage, "data.label is '{}', but the job has no such field; set data.label, or data.classes = 0",
         options.label);
  }
  if (is_floating(found->dtype) || found->dtype == Dtype::boolean) {
    fail(ExitCode::usage, "data.classes needs integer labels, field '{}' is {}; set data.classes = 0", options.label,
         name_of(found->dtype));
  }
  return static_cast<std::size_t>(found - fields.begin());
}

// Where a value stands in a sample: " at (3, 7)", nothing for one value.
std::string at_text(const Shape& shape, std::size_t index) {
  if (shape.elements() <= 1) return "";
  std::string text;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const auto extent = static_cast<std::size_t>(shape[i]);
    text = std::to_string(index % extent) + (text.empty() ? "" : ", ") + text;
    index /= extent;
  }
  return " at (" + text + ")";
}

}  // namespace

Filler::Filler(const Dataset& dataset, std::unique_ptr<Reader> reader, Sampler sampler, Transforms transforms,
               const FeedOptions& options)
    : dataset_(dataset),
      cache_(dataset, std::move(reader), options.memory_bytes),
      sampler_(std::move(sampler)),
      transforms_(std::move(transforms)),
      options_(options),
      label_(label_field(dataset, options)) {
  for (std::size_t i = 0; i < dataset.fields().size(); ++i) {
    stored_bytes_.push_back(sample_bytes(dataset.fields().subspan(i, 1)));
    batch_bytes_.push_back(sample_bytes(transforms_.fields().subspan(i, 1)));
  }
  drawn_.reserve(static_cast<std::size_t>(options.max_rows));
}

bool Filler::fill(const MicroBatch& at, std::span<const std::span<std::byte>> places) {
  if (at.rows < 0 || at.rows > options_.max_rows) {
    fail(ExitCode::internal, "feed: micro-batch of {} rows, slots have {}", at.rows, options_.max_rows);
  }
  drawn_.clear();
  for (std::uint32_t row = 0; row < at.rows; ++row) drawn_.push_back({sampler_.sample(at.first + row), row});
  // In the order they lie in, so that a micro-batch reads no block twice however small the cache.
  std::sort(drawn_.begin(), drawn_.end(),
            [](const Drawn& a, const Drawn& b) { return a.sample != b.sample ? a.sample < b.sample : a.row < b.row; });
  for (const Drawn& drawn : drawn_) {
    if (stopping_) return false;
    place(cache_.with_sample(drawn.sample), drawn, at.first + drawn.row, places);
    blocks_read_ = cache_.blocks_read();
  }
  return true;
}

void Filler::place(const Block& block, const Drawn& drawn, std::uint64_t position,
                   std::span<const std::span<std::byte>> places) const {
  const DataFile& file = dataset_.files()[block.file];
  const auto row = static_cast<std::size_t>(drawn.sample - file.first_sample - block.first);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto stored = std::span(block.fields[i]).subspan(row * stored_bytes_[i], stored_bytes_[i]);
    check(file, i, drawn.sample, stored);
    transforms_.apply(i, position, stored, places[i].subspan(drawn.row * batch_bytes_[i], batch_bytes_[i]));
  }
}

void Filler::check(const DataFile& file, std::size_t field, std::int64_t sample,
                   std::span<const std::byte> values) const {
  const Field& stored = dataset_.fields()[field];
  if (const auto bad = first_not_finite(values, stored.dtype)) {
    fail(ExitCode::data, "{}:{}: row {} (sample {} of the data) holds NaN or Inf{}; remove the sample or repair it",
         file.path.string(), file.fields[field].path, sample - file.first_sample, sample, at_text(stored.shape, *bad));
  }
  if (field != label_) return;
  if (const auto bad = first_bad_label(values, stored.dtype, options_.classes)) {
    fail(ExitCode::data,
         "{}:{}: row {} (sample {} of the data): label {}{} is outside 0 to {}; repair it, or set data.classes",
         file.path.string(), file.fields[field].path, sample - file.first_sample, sample, bad->value,
         at_text(stored.shape, bad->index), options_.classes - 1);
  }
}

}  // namespace trireme::io
