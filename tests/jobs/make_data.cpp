// Synthetic images: numbers come from Philox, so the files are the same everywhere.
#include "tests/jobs/make_data.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/base/philox.h"
#include "io/hdf5/hdf5.h"

namespace trireme::tests {
namespace {

// Noise of ±64 around patterns that differ by up to 255: easy, but not at the first step.
std::uint8_t pixel(std::int64_t label, std::int64_t place, std::uint64_t seed, std::uint64_t sample) {
  const RandomKey pattern = random_key(99, Purpose::parameter, static_cast<std::uint64_t>(label), 0, 0);
  const RandomKey noise = random_key(seed, Purpose::transform, sample, 0, 0);
  const auto at = static_cast<std::uint64_t>(place);
  const int base = static_cast<int>(random_bits(pattern, at) % 256);
  const int shift = static_cast<int>(random_bits(noise, at) % 129) - 64;
  return static_cast<std::uint8_t>(std::clamp(base + shift, 0, 255));
}

}  // namespace

void make_data(const std::filesystem::path& folder, const char* name, const DataShape& shape) {
  std::filesystem::create_directories(folder);
  const std::int64_t pixels = shape.height * shape.width;
  std::uint64_t sample = 0;
  for (int f = 0; f < shape.files; ++f) {
    const bool last = f + 1 == shape.files && shape.last_samples > 0;
    const std::int64_t samples = last ? shape.last_samples : shape.samples;
    std::vector<std::uint8_t> images(static_cast<std::size_t>(samples * pixels));
    std::vector<std::int64_t> labels(static_cast<std::size_t>(samples));
    for (std::size_t s = 0; s < labels.size(); ++s, ++sample) {
      const RandomKey key = random_key(shape.seed, Purpose::shuffle, sample, 0, 0);
      labels[s] = static_cast<std::int64_t>(to_below(random_bits(key, 0), static_cast<std::uint32_t>(shape.classes)));
      for (std::int64_t p = 0; p < pixels; ++p) {
        images[s * static_cast<std::size_t>(pixels) + static_cast<std::size_t>(p)] =
            pixel(labels[s], p, shape.seed, sample);
      }
    }
    const auto file = io::Hdf5File::create(folder / (std::string(name) + "-" + std::to_string(f) + ".h5"));
    const io::Hdf5File::Creation how{.chunk_rows = shape.chunk_rows, .deflate = shape.deflate};
    file->create_dataset("/image", Shape{samples, shape.height, shape.width}, Dtype::u8, how);
    file->create_dataset("/label", Shape{samples}, Dtype::i64, how);
    file->write("/image", 0, samples, Dtype::u8, bytes_of(images));
    file->write("/label", 0, samples, Dtype::i64, bytes_of(labels));
    file->close();
  }
}

}  // namespace trireme::tests
