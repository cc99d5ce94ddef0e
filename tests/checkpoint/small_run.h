// A small made-up run for the tests of checkpoints: arenas whose every bit is a function of (seed, arena, element), and
// W Savers in one process that stand for W ranks.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "io/checkpoint/loader.h"
#include "io/checkpoint/saver.h"

namespace trireme::io::small_run {

// A folder of its own below `parent`, removed at the end.
class Folder {
 public:
  explicit Folder(const std::string& name, const std::filesystem::path& parent) {
    static int count = 0;
    path_ = parent / ("trireme-" + name + "-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Sizes: 4 tiles of parameters (65,536 bytes) unless told otherwise, one moment of the same layout, buffers of less than
// one tile, a counter in f64.
struct Size {
  std::uint64_t tiles = 4;
};

class State {
 public:
  explicit State(const Size& size = {}) {
    const std::uint64_t elements = size.tiles * tile_elements;
    const auto half = static_cast<std::int64_t>(elements / 2);
    // The second tensor ends before the arena does: padding is no state.
    const std::vector<Entry> entries{{"fc1.weight", Shape{half / 64, 64}, {0, elements / 2}},
                                     {"fc1.bias", Shape{half - 100}, {elements / 2, elements - 100}}};
    add("parameters", Dtype::f32, elements, entries);
    add("moment1", Dtype::f32, elements, entries);
    add("buffers", Dtype::f32, 1000, {{"bn.mean", Shape{500}, {0, 500}}, {"bn.var", Shape{500}, {500, 1000}}});
    add("sums", Dtype::f64, 5000, {{"total", Shape{5000}, {0, 5000}}});
  }
  [[nodiscard]] std::vector<ArenaState> arenas() const {
    std::vector<ArenaState> arenas;
    for (const Arena& arena : arenas_) {
      arenas.push_back({arena.name, arena.dtype, std::span(*arena.memory), arena.entries});
    }
    return arenas;
  }
  // Every byte of tensors and padding.
  void fill(std::uint64_t seed) {
    for (Arena& arena : arenas_) {
      std::uint64_t x = seed * 0x9E3779B97F4A7C15u + arena.memory->size();
      for (std::byte& byte : *arena.memory) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(x >> 56);
      }
    }
  }
  void clear() {
    for (Arena& arena : arenas_) std::memset(arena.memory->data(), 0, arena.memory->size());
  }
  // The arena by name, for tests that change single values.
  [[nodiscard]] std::span<std::byte> memory(const std::string& name) const {
    for (const Arena& arena : arenas_) {
      if (arena.name == name) return *arena.memory;
    }
    return {};
  }
  friend bool operator==(const State& a, const State& b) {
    for (std::size_t i = 0; i < a.arenas_.size(); ++i) {
      if (*a.arenas_[i].memory != *b.arenas_[i].memory) return false;
    }
    return true;
  }

 private:
  struct Arena {
    std::string name;
    Dtype dtype;
    std::shared_ptr<std::vector<std::byte>> memory;
    std::vector<Entry> entries;
  };
  void add(const std::string& name, Dtype dtype, std::uint64_t elements, std::vector<Entry> entries) {
    arenas_.push_back(
        {name, dtype, std::make_shared<std::vector<std::byte>>(elements * size_of(dtype)), std::move(entries)});
  }
  std::vector<Arena> arenas_;
};

inline Scalars scalars_at(std::uint64_t step, std::uint64_t world_size) {
  Scalars scalars;
  scalars.step = step;
  scalars.cursor = step * 128 + 7;
  scalars.world_size = world_size;
  scalars.micro_batches = 8;
  scalars.evaluation_due = step % 2 == 1;
  scalars.values = {{"best_metric", exact(0.1 * static_cast<double>(step))}, {"updates", std::to_string(step)}};
  scalars.notes = {{"threads", std::to_string(world_size)}};
  scalars.identity = {{"train.batch", "128"}, {"plugin", "small \"quoted\" ü"}};
  return scalars;
}

// W ranks in one process.
class Ranks {
 public:
  Ranks(const std::filesystem::path& folder, int world_size, const std::string& attempt, std::int64_t keep_last = 3,
        const std::function<void()>& check = nullptr) {
    for (int rank = 0; rank < world_size; ++rank) {
      savers_.push_back(
          std::make_unique<Saver>(SaverOptions{folder, rank, world_size, attempt, keep_last, check}, device_));
    }
  }
  void snapshot(const Scalars& scalars, const State& state, bool best = false) {
    device::Stream compute = device_->compute_stream();
    for (const auto& saver : savers_) saver->snapshot(scalars, state.arenas(), best, compute);
  }
  void wait() {
    for (const auto& saver : savers_) saver->wait();
  }
  void commit(std::uint64_t step) {
    for (const auto& saver : savers_) saver->commit(step);
    wait();
  }
  void save(std::uint64_t step, const State& state, bool best = false) {
    snapshot(scalars_at(step, savers_.size()), state, best);
    wait();
    commit(step);
  }
  [[nodiscard]] Saver& operator[](std::size_t rank) { return *savers_[rank]; }
  [[nodiscard]] std::size_t size() const { return savers_.size(); }

 private:
  std::shared_ptr<device::Device> device_ = device::make_cpu();
  std::vector<std::unique_ptr<Saver>> savers_;
};

// What W' readers find together: each share is read into the one state.
inline Manifest load(const std::filesystem::path& checkpoint, const State& into, std::uint64_t readers = 1) {
  Manifest manifest = read_manifest(checkpoint);
  for (std::uint64_t reader = 0; reader < readers; ++reader) load_share(manifest, into.arenas(), reader, readers);
  return manifest;
}

}  // namespace trireme::io::small_run
