// Data files that a small model learns from: each class is a pattern, each sample its pattern and noise.
#pragma once

#include <cstdint>
#include <filesystem>

namespace trireme::tests {

struct DataShape {
  int files = 2;
  std::int64_t samples = 256;  // of each file; the last has `last_samples` where that is set
  std::int64_t last_samples = 0;
  std::int64_t height = 28, width = 28;  // u8 pixels
  int classes = 10;
  std::int64_t chunk_rows = 32;  // 0: contiguous
  int deflate = 0;
  std::uint64_t seed = 1;  // of the noise; the patterns are always the same
};

// Writes FOLDER/NAME-0.h5, … with /image (samples, height, width) u8 and /label (samples) i64, by io/hdf5 alone. A pure
// function of its arguments.
void make_data(const std::filesystem::path& folder, const char* name, const DataShape& shape);

}  // namespace trireme::tests
