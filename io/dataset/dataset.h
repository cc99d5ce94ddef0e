// The data of a job as one list of samples: which data files, which datasets are its fields, how many rows each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/field.h"
#include "io/hdf5/hdf5.h"

namespace trireme::io {

struct DataFile {
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::int64_t first_sample = 0;  // of this file in the whole
  std::int64_t samples = 0;
  std::vector<DatasetInfo> fields;  // in the order of Dataset::fields
};

// Immutable, so shared between threads. One rank opens the files and builds it; the others get its text.
class Dataset {
 public:
  // Expands patterns (sorted by name; each must match), opens every file once and checks it: fields there, shapes and
  // types alike in all files, as many rows in each field, no file twice. Files of one sample each, whose datasets have
  // no sample dimension, are known by a scalar among the fields (a label) or by a field written as "/data[sample]";
  // then all files must be so. Throws Error(data) with file, dataset and both values.
  [[nodiscard]] static Dataset open(std::span<const std::filesystem::path> patterns,
                                    const std::map<std::string, std::string>& fields);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static Dataset from_text(const std::string& text);

  [[nodiscard]] std::int64_t samples() const;
  [[nodiscard]] std::span<const Field> fields() const;  // in name order; as stored
  [[nodiscard]] std::span<const DataFile> files() const;
  [[nodiscard]] const DataFile& file_of(std::int64_t sample) const;
  // What a resume compares: file names, sizes, fields, shapes, types, rows. No paths, no times.
  [[nodiscard]] std::string identity() const;
  // Rows that are read together: chunks of the field with the most bytes (tiny ones until 64 KiB, at most 128 MiB),
  // about 1 MiB of files that are not chunked.
  [[nodiscard]] std::int64_t block_rows(const DataFile& file) const;
  [[nodiscard]] std::uint64_t decoded_bytes() const;  // of all samples, all fields
  [[nodiscard]] bool one_sample_files() const;

 private:
  std::vector<Field> fields_;
  std::vector<DataFile> files_;
  bool one_sample_files_ = false;
};

}  // namespace trireme::io
