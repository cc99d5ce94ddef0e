// What a checkpoint holds, as the run hands it over: named arenas with named ranges, and a few scalars.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/range.h"
#include "core/base/shape.h"

namespace trireme::io {

// A named tensor inside an arena.
struct Entry {
  std::string name;  // "fc1.weight"
  Shape shape;
  Range range;  // elements of the arena
};
// One contiguous arena in device memory, cut into slices at whole tiles: slice r of W holds tiles
// [T·r ÷ W, T·(r+1) ÷ W).
struct ArenaState {
  std::string name;  // "parameters", "moment1", "moment2", "buffers"
  Dtype dtype = Dtype::f32;
  std::span<std::byte> memory;
  std::vector<Entry> entries;

  [[nodiscard]] std::uint64_t elements() const { return memory.size() / size_of(dtype); }
  [[nodiscard]] Range slice(std::uint64_t index, std::uint64_t count) const;  // elements
};

// Everything else, a few hundred bytes: exact text (doubles as hexadecimal floats).
struct Scalars {
  std::uint64_t step = 0;                       // updates are done up to this step
  std::uint64_t cursor = 0;                     // position of the next sample
  std::uint64_t world_size = 0;                 // of the writer; a resume may differ
  std::uint64_t micro_batches = 0;              // V
  bool evaluation_due = false;                  // a resume evaluates first
  std::map<std::string, std::string> values;    // state: step block's device half, best metric, …
  std::map<std::string, std::string> notes;     // recorded only (threads, versions): neither state nor compared
  std::map<std::string, std::string> identity;  // job keys that change bits, plugin, data, …: compared on resume
};

[[nodiscard]] std::string exact(double value);  // "0x1.8p+1"
[[nodiscard]] double exact_double(const std::string& text);

}  // namespace trireme::io
