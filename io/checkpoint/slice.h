// One slice file: HDF5 with one contiguous dataset for each arena and /blocks, the XXH3-64 of each 1 MiB. The bulk
// goes past HDF5 by pwrite and pread. Inside io/checkpoint only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/file.h"
#include "io/checkpoint/loader.h"

namespace trireme::io {

// One arena's part of a slice.
struct SlicePart {
  std::string arena;
  Dtype dtype = Dtype::f32;
  std::span<const std::byte> bytes;  // may be empty: then the file has no such dataset
};

// Writes, then flushes file and folder. `attributes` are for people with h5dump; `moved` is called after each block and
// flush. Throws Error(io).
void write_slice(const std::filesystem::path& file, std::span<const SlicePart> parts,
                 const std::map<std::string, std::string>& attributes, const std::function<void()>& moved);

// Reads back what a manifest records of slice `index`: sizes are checked against the arenas, /blocks is hashed, the
// bulk is not read. Throws Error(data) naming file and place.
[[nodiscard]] SliceFile describe_slice(const std::filesystem::path& folder, std::span<const Manifest::Arena> arenas,
                                       std::uint64_t index, std::uint64_t count);

// Reads parts of one slice of a committed checkpoint, each block it touches checked. One thread at a time.
class SliceReader {
 public:
  // Checks size, /blocks and HDF5's own bytes.
  SliceReader(const Manifest& manifest, std::uint64_t index);
  // Bytes [begin, begin + to.size()) of this slice's part of arena number `arena`.
  void read(std::size_t arena, std::uint64_t begin, std::span<std::byte> to);

 private:
  void check(std::size_t arena, std::uint64_t block, std::span<const std::byte> bytes) const;

  const Manifest& manifest_;
  const SliceFile& slice_;
  File file_;
  struct Part {
    std::uint64_t offset = 0, bytes = 0;  // in the file
    std::size_t first_block = 0;
  };
  std::vector<Part> parts_;
  std::vector<std::uint64_t> blocks_;
  std::vector<std::byte> scratch_;
};

}  // namespace trireme::io
