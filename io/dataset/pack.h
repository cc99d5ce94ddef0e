// `trireme pack`: IDX or HDF5 into N HDF5 data files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace trireme::io {

// An IDX file (LeCun's MNIST format; plain or gzipped): big-endian header 0 0 type rank, extents, values. Values of
// types wider than a byte are swapped to the host's order. Size is checked against the header before memory is taken.
struct IdxArray {
  Shape shape;
  Dtype dtype = Dtype::u8;
  std::vector<std::byte> values;
};
[[nodiscard]] IdxArray read_idx(const std::filesystem::path& path);

struct PackOptions {
  std::map<std::string, std::string> fields;  // field → "file.idx3-ubyte.gz" or "file.h5:/dataset"
  std::filesystem::path output;               // "fashion/train": fashion/train-00000-of-00004.h5 …
  std::int64_t files = 1;
  std::int64_t chunk_rows = 256;  // 0: contiguous; fewer where a chunk would pass 64 MiB
  int deflate = 0;
  bool shuffle = false, fletcher32 = false;
  bool overwrite = false;        // existing outputs are refused otherwise
  bool shuffle_samples = false;  // permute samples by `seed` before packing
  std::uint64_t seed = 1;
};
// Files are written under temporary names (".NAME.HOST.PID.tmp"), fsynced, and renamed when all are complete. What
// fails leaves no new file, and the old ones as they were; what a killed pack has left, the next one into `output`
// clears away. Only a crash within the renames themselves leaves some files new and some old, each of them whole.
// `progress` gets samples done and total. Returns the files written.
std::vector<std::filesystem::path> pack(const PackOptions& options,
                                        const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme::io
