// Reads whole blocks of rows. Narrow on purpose: a direct reader (chunk index, pread, own decode) takes its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "io/dataset/dataset.h"

namespace trireme::io {

// Rows [first, first + rows) of one file, all fields decoded to Dataset::fields' types, dense.
struct Block {
  std::size_t file = 0;
  std::int64_t first = 0, rows = 0;
  std::vector<std::vector<std::byte>> fields;
};

class Reader {
 public:
  virtual ~Reader() = default;
  // Reuses the memory of `block`. Throws Error(data) with file, dataset and rows; Error(io) for failed reads.
  virtual void read(std::size_t file, std::int64_t first, std::int64_t rows, Block& block) = 0;
};

// Through HDF5, keeping up to 64 files open. `dataset` outlives the reader. A file whose size changed since it was
// listed is refused.
[[nodiscard]] std::unique_ptr<Reader> make_hdf5_reader(const Dataset& dataset);

// Blocks by (file, index), decoded ones kept up to a budget, least recently used dropped. One thread.
class BlockCache {
 public:
  // `dataset` outlives the cache. Memory of dropped blocks is used again: nothing is allocated once the budget is full.
  BlockCache(const Dataset& dataset, std::unique_ptr<Reader> reader, std::uint64_t budget_bytes);
  ~BlockCache();
  // The block with this sample; valid until the next call.
  [[nodiscard]] const Block& with_sample(std::int64_t sample);
  [[nodiscard]] std::uint64_t blocks_read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// How often a rank reads each block in an epoch under a global shuffle, given this budget, if it draws all samples;
// 1 where the decoded data fit (then once in the whole run). A start that finds more prints it and suggests blocks.
[[nodiscard]] double reads_of_a_block(const Dataset& dataset, std::uint64_t budget_bytes);

}  // namespace trireme::io
