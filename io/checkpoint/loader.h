// Reading checkpoints: find, check, load a share, inspect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/state.h"

namespace trireme::io {

struct SliceFile {
  std::string file;         // "slice-00000-of-00002.h5"
  std::string blocks_hash;  // XXH3-64 of its /blocks, hex
  std::uint64_t bytes = 0;
  // Where each arena of this slice, then "blocks", begins in the file; what is empty is left out. The rest of the file
  // is HDF5's own and has one hash, so a reader never parses what it has not checked.
  std::map<std::string, std::uint64_t> offsets;
  std::string rest_hash;
};
// manifest.json
struct Manifest {
  std::filesystem::path folder;
  int format = 1;
  bool best = false;  // best by the job's metric when it was saved
  Scalars scalars;
  struct Arena {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::uint64_t elements = 0;
    std::vector<Entry> entries;
  };
  std::vector<Arena> arenas;
  std::vector<SliceFile> slices;
};

// Committed checkpoints in `folder` (checkpoints/), newest first; of a step saved twice the later save comes first.
[[nodiscard]] std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);
// N of ".../step-N" or ".../step-N.rR"; 0 for another name.
[[nodiscard]] std::uint64_t step_of(const std::filesystem::path& checkpoint);
// Names of what set_aside() left in `folder`, in name order.
[[nodiscard]] std::vector<std::string> list_set_aside(const std::filesystem::path& folder);
// Throws Error(data) for a checksum or format fault (naming file and place), Error(usage) for the format of another
// version, Error(io) for a failed read.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& checkpoint);
// Differences that forbid a resume: arenas, tensors (name, shape) and identity keys; each line names key and both
// values.
[[nodiscard]] std::vector<std::string> differences(const Manifest& manifest, std::span<const ArenaState> arenas,
                                                   const std::map<std::string, std::string>& identity);
// Those of the arenas given alone: what a reader of some of them (evaluation) must have alike.
[[nodiscard]] std::vector<std::string> tensor_differences(const Manifest& manifest, std::span<const ArenaState> arenas);
// Reads share `index` of `count` of every arena into place (host memory), each block it touches checked.
void load_share(const Manifest& manifest, std::span<const ArenaState> arenas, std::uint64_t index, std::uint64_t count);
// Renames to checkpoints/set-aside-step-N…, with a note file of why where it can be written.
void set_aside(const std::filesystem::path& checkpoint, const std::string& why);
// Rank 0 at start, under the lease: removes dead attempts (.step-*) and trash.
void sweep(const std::filesystem::path& folder);

// Verifies everything; SHA-256 over names, types, shapes and bytes of all state in name order ("moment1/fc1.weight", …,
// then "step", cursor and scalar values that are state), whatever the number of ranks that wrote it.
struct Inspection {
  Manifest manifest;
  std::string state_sha256;
  std::uint64_t bytes = 0;
};
[[nodiscard]] Inspection inspect(const std::filesystem::path& checkpoint);
[[nodiscard]] std::string to_text(const Inspection& inspection);
[[nodiscard]] std::string to_json(const Inspection& inspection);

}  // namespace trireme::io
