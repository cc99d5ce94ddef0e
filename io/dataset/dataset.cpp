// Questions to a dataset that is known: where a sample lies, what is read together, what a resume compares.
#include "io/dataset/dataset.h"

#include <algorithm>

#include "core/base/digest.h"
#include "core/base/error.h"
#include "io/dataset/layout.h"

namespace trireme::io {
namespace {

constexpr std::uint64_t whole_read = std::uint64_t{1} << 20;  // of a contiguous file
constexpr std::uint64_t least_read = std::uint64_t{1} << 16;  // tiny chunks are read by the dozen
constexpr std::uint64_t largest_read = std::uint64_t{1} << 27;

}  // namespace

std::uint64_t sample_bytes(std::span<const Field> fields) {
  std::uint64_t bytes = 0;
  for (const Field& field : fields) bytes += static_cast<std::uint64_t>(field.shape.elements()) * size_of(field.dtype);
  return bytes;
}

std::int64_t Dataset::samples() const {
  return files_.empty() ? 0 : files_.back().first_sample + files_.back().samples;
}
std::span<const Field> Dataset::fields() const { return fields_; }
std::span<const DataFile> Dataset::files() const { return files_; }
bool Dataset::one_sample_files() const { return one_sample_files_; }

const DataFile& Dataset::file_of(std::int64_t sample) const {
  if (sample < 0 || sample >= samples()) {
    fail(ExitCode::internal, "sample {} asked for, the data have {}", sample, samples());
  }
  // The last file that begins at or before the sample: of several that begin there only the last is not empty.
  const auto after = std::upper_bound(files_.begin(), files_.end(), sample,
                                      [](std::int64_t s, const DataFile& file) { return s < file.first_sample; });
  return *std::prev(after);
}

std::int64_t Dataset::block_rows(const DataFile& file) const {
  if (one_sample_files_) return 1;
  // The field with the most bytes decides: its chunks are what is worth reading once.
  std::size_t heaviest = 0;
  std::uint64_t heaviest_bytes = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::uint64_t bytes = sample_bytes(std::span(fields_).subspan(i, 1));
    if (bytes > heaviest_bytes) heaviest_bytes = bytes, heaviest = i;
  }
  const std::uint64_t row = std::max<std::uint64_t>(sample_bytes(fields_), 1);
  const DatasetInfo& info = file.fields[heaviest];
  const std::uint64_t most = std::max<std::uint64_t>(largest_read / row, 1);
  std::uint64_t rows = 0;
  if (info.chunked && info.chunk_rows > 0) {
    const std::uint64_t chunk = std::min(static_cast<std::uint64_t>(info.chunk_rows), most);  // their bytes never wrap
    rows = chunk * std::max<std::uint64_t>(1, (least_read + chunk * row - 1) / (chunk * row));
  } else {
    rows = whole_read / row;
  }
  rows = std::clamp<std::uint64_t>(rows, 1, most);
  return std::min(static_cast<std::int64_t>(rows), std::max<std::int64_t>(file.samples, 1));
}

std::uint64_t Dataset::decoded_bytes() const { return static_cast<std::uint64_t>(samples()) * sample_bytes(fields_); }

std::string Dataset::identity() const {
  std::string all;
  for (const Field& field : fields_) {
    all += fmt::format("{}\n{}\n{}\n", field.name, name_of(field.dtype), field.shape.text());
  }
  for (const DataFile& file : files_) {
    all += fmt::format("{}\n{} {} {}\n", file.path.filename().string(), file.bytes, file.samples, block_rows(file));
    for (const DatasetInfo& info : file.fields) all += fmt::format("{} {}\n", info.path, info.stored_type);
  }
  return fmt::format("{} samples in {} file(s), xxh3 {:016x}", samples(), files_.size(), xxh3(bytes_of(all)));
}

}  // namespace trireme::io
