// Blocks through HDF5.
#include "io/dataset/reader.h"

#include <algorithm>
#include <list>

#include "core/base/error.h"
#include "io/dataset/layout.h"

namespace trireme::io {
namespace {

constexpr std::size_t open_files = 64;

class Hdf5Reader final : public Reader {
 public:
  explicit Hdf5Reader(const Dataset& dataset) : dataset_(dataset) {}

  void read(std::size_t file, std::int64_t first, std::int64_t rows, Block& block) override {
    const DataFile& data = dataset_.files()[file];
    const Hdf5File& opened = open(file);
    const std::span<const Field> fields = dataset_.fields();
    block.file = file;
    block.first = first;
    block.rows = rows;
    block.fields.resize(fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::vector<std::byte>& bytes = block.fields[i];
      bytes.resize(static_cast<std::size_t>(rows) * sample_bytes(fields.subspan(i, 1)));
      // A file of one sample has no sample dimension: all of its rows are the sample.
      const Shape& stored = data.fields[i].shape;
      const bool whole = dataset_.one_sample_files();
      opened.read(data.fields[i].path, whole ? 0 : first,
                  !whole               ? rows
                  : stored.rank() == 0 ? 1
                                       : stored[0],
                  fields[i].dtype, bytes);
    }
  }

 private:
  struct Opened {
    std::size_t file;
    std::shared_ptr<Hdf5File> handle;
  };

  // The most recently used first.
  const Hdf5File& open(std::size_t file) {
    const auto found = std::find_if(opened_.begin(), opened_.end(), [&](const Opened& o) { return o.file == file; });
    if (found != opened_.end()) {
      opened_.splice(opened_.begin(), opened_, found);
      return *opened_.front().handle;
    }
    const DataFile& data = dataset_.files()[file];
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(data.path, error);
    if (!error && bytes != data.bytes) {
      fail(ExitCode::data, "{}: has {} bytes now, it had {} when the job started; data files must not change meanwhile",
           data.path.string(), bytes, data.bytes);
    }
    if (opened_.size() == open_files) opened_.pop_back();
    opened_.push_front({file, Hdf5File::open(data.path)});
    return *opened_.front().handle;
  }

  const Dataset& dataset_;
  std::list<Opened> opened_;
};

}  // namespace

std::unique_ptr<Reader> make_hdf5_reader(const Dataset& dataset) { return std::make_unique<Hdf5Reader>(dataset); }

double reads_of_a_block(const Dataset& dataset, std::uint64_t budget_bytes) {
  const auto decoded = static_cast<double>(dataset.decoded_bytes());
  const auto budget = static_cast<double>(budget_bytes);
  if (decoded <= budget) return 1;
  double blocks = 0;
  for (const DataFile& file : dataset.files()) {
    const std::int64_t rows = dataset.block_rows(file);
    blocks += static_cast<double>((file.samples + rows - 1) / rows);
  }
  // A sample drawn at random lies in a kept block with probability budget ÷ decoded.
  const double misses = static_cast<double>(dataset.samples()) * (1 - budget / decoded);
  return std::max(1.0, misses / blocks);
}

}  // namespace trireme::io
