// Where `trireme pack` takes a field from: an IDX file, held in memory, or a dataset of an HDF5 file, read row by row.
// Private to io/dataset.
#pragma once

#include <memory>
#include <string>

#include "io/dataset/pack.h"

namespace trireme::io {

class PackSource {
 public:
  virtual ~PackSource() = default;
  [[nodiscard]] virtual const Shape& shape() const = 0;  // first extent: rows
  [[nodiscard]] virtual Dtype dtype() const = 0;
  // Rows [first, first + count), dense; `to` has exactly their size.
  virtual void read(std::int64_t first, std::int64_t count, std::span<std::byte> to) = 0;
  // From now on rows are read in any order: what fits `memory_bytes` is kept.
  virtual void expect_random(std::uint64_t memory_bytes) = 0;
  // "train-images-idx3-ubyte.gz, 26421880 bytes, xxh3 0123456789abcdef": written into what is packed.
  [[nodiscard]] virtual std::string provenance() const = 0;

  [[nodiscard]] std::size_t row_bytes() const {
    return static_cast<std::size_t>(shape().elements(1, shape().rank())) * size_of(dtype());
  }
};

// `text`: "file.idx3-ubyte.gz" or "file.h5:/dataset". Throws Error(usage) for an HDF5 file without a dataset.
[[nodiscard]] std::unique_ptr<PackSource> open_pack_source(const std::string& field, const std::string& text);

}  // namespace trireme::io
