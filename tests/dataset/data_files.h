// Small data files whose every value follows from the number of its sample.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/dataset/dataset.h"
#include "io/hdf5/hdf5.h"

namespace trireme::test {

// Sample s: image (2, 3) of u8 with value (7·s + i) mod 251 at element i, label i64 = s mod 10.
inline std::uint8_t pixel(std::int64_t sample, std::int64_t element) {
  return static_cast<std::uint8_t>((7 * sample + element) % 251);
}
inline std::int64_t label(std::int64_t sample) { return sample % 10; }

inline std::vector<std::uint8_t> image(std::int64_t sample) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < 6; ++i) pixels.push_back(pixel(sample, i));
  return pixels;
}

// Samples [first, first + rows) as /image and /label.
inline void write_samples(const std::filesystem::path& path, std::int64_t first, std::int64_t rows,
                          const io::Hdf5File::Creation& how = {}) {
  const auto file = io::Hdf5File::create(path);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t s = first; s < first + rows; ++s) {
    for (const std::uint8_t p : image(s)) pixels.push_back(p);
    labels.push_back(label(s));
  }
  file->create_dataset("/image", Shape({rows, 2, 3}), Dtype::u8, how);
  file->create_dataset("/label", Shape({rows}), Dtype::i64, how);
  file->write("/image", 0, rows, Dtype::u8, std::as_bytes(std::span(pixels)));
  file->write("/label", 0, rows, Dtype::i64, std::as_bytes(std::span(labels)));
  file->close();
}

inline const std::map<std::string, std::string>& sample_fields() {
  static const std::map<std::string, std::string> fields = {{"image", "/image"}, {"label", "/label"}};
  return fields;
}

inline io::Dataset open_samples(const std::vector<std::filesystem::path>& patterns) {
  return io::Dataset::open(patterns, sample_fields());
}

}  // namespace trireme::test
