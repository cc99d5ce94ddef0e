// HDF5 for the rest of Trireme: RAII handles, one process-wide lock, errors with file, dataset and the library's own
// words. The only folder that includes hdf5.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace trireme::io {

// How a dataset is stored.
struct DatasetInfo {
  std::string path;          // "/group/image"
  Shape shape;               // first extent: samples
  Dtype dtype = Dtype::f32;  // what it is read as: narrowest of ours that holds every value
  std::string stored_type;   // "16-bit big-endian unsigned", for messages
  bool chunked = false;
  std::int64_t chunk_rows = 0;       // rows of a chunk; 0: not chunked
  std::vector<std::string> filters;  // "deflate", "shuffle", "fletcher32", …
};

// An open file. Thread-safe by the lock.
class Hdf5File {
 public:
  // Throws Error(data) with file and reason: missing, folder, truncated, not HDF5, being written.
  [[nodiscard]] static std::shared_ptr<Hdf5File> open(const std::filesystem::path& path);
  [[nodiscard]] static std::shared_ptr<Hdf5File> create(const std::filesystem::path& path);  // truncates
  [[nodiscard]] static std::shared_ptr<Hdf5File> append(const std::filesystem::path& path);  // for writing, as it is
  virtual ~Hdf5File() = default;
  [[nodiscard]] virtual const std::filesystem::path& path() const = 0;
  [[nodiscard]] virtual std::vector<std::string> datasets() const = 0;  // all paths below the root, sorted
  [[nodiscard]] virtual bool has(const std::string& dataset) const = 0;
  // A scalar has rank 0. Throws Error(data): no such dataset (with the nearest name), type not numeric, more than 8
  // dimensions, a filter this HDF5 lacks, a virtual dataset whose sources are missing.
  [[nodiscard]] virtual DatasetInfo info(const std::string& dataset) const = 0;
  // Rows [first, first + count) converted to `as`, dense, into `to` (exactly that size); a scalar is one row. Throws
  // Error(data) with file, dataset and rows: checksum, value out of the range of `as`, u64 above 2^63 - 1; Error(io).
  virtual void read(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype as,
                    std::span<std::byte> to) const = 0;

  struct Creation {
    std::int64_t chunk_rows = 0;  // 0: contiguous, allocated early
    int deflate = 0;              // level; 0: none
    bool shuffle = false, fletcher32 = false;
  };
  virtual void create_dataset(const std::string& dataset, const Shape& shape, Dtype dtype, const Creation& how) = 0;
  virtual void write(const std::string& dataset, std::int64_t first, std::int64_t count, Dtype dtype,
                     std::span<const std::byte> from) = 0;
  // Byte offset in the file of a contiguous dataset allocated early, for pwrite outside the lock.
  [[nodiscard]] virtual std::uint64_t offset(const std::string& dataset) const = 0;
  virtual void write_attribute(const std::string& name, const std::string& text) = 0;  // of the root group
  [[nodiscard]] virtual std::optional<std::string> attribute(const std::string& name) const = 0;
  virtual void close() = 0;  // flushes; reports errors that a destructor would hide
};

[[nodiscard]] std::string hdf5_version();

}  // namespace trireme::io
