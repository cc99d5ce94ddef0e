// Decoded blocks by least recent use.
#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "io/dataset/layout.h"
#include "io/dataset/reader.h"

namespace trireme::io {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// What a block holds on to: a short one that took the place of a long one keeps its memory.
std::uint64_t memory_of(const Block& block) {
  std::uint64_t bytes = 0;
  for (const std::vector<std::byte>& field : block.fields) bytes += field.capacity();
  return bytes;
}

}  // namespace

struct BlockCache::State {
  struct Slot {
    Block block;
    std::uint32_t newer = none, older = none;  // neighbours in the order of use
    std::size_t id = 0;                        // of the block among all blocks of the data
    std::uint64_t bytes = 0;                   // its memory
  };

  const Dataset& dataset;
  std::unique_ptr<Reader> reader;
  std::uint64_t budget;
  std::uint64_t row_bytes;
  std::vector<std::size_t> first_block;  // of each file
  std::vector<std::int64_t> rows;        // of a block of each file
  std::vector<std::uint32_t> slot_of;    // by block; none: not kept
  std::vector<Slot> slots;
  std::vector<std::uint32_t> unused;  // slots whose read failed
  std::uint32_t newest = none, oldest = none;
  std::uint64_t held = 0, reads = 0;

  State(const Dataset& data, std::unique_ptr<Reader> source, std::uint64_t budget_bytes)
      : dataset(data), reader(std::move(source)), budget(budget_bytes), row_bytes(sample_bytes(data.fields())) {
    std::size_t blocks = 0;
    for (const DataFile& file : data.files()) {
      first_block.push_back(blocks);
      rows.push_back(data.block_rows(file));
      blocks += static_cast<std::size_t>((file.samples + rows.back() - 1) / rows.back());
    }
    slot_of.assign(blocks, none);
  }

  void unlink(std::uint32_t index) {
    const Slot& slot = slots[index];
    (slot.newer == none ? newest : slots[slot.newer].older) = slot.older;
    (slot.older == none ? oldest : slots[slot.older].newer) = slot.newer;
  }

  void link_newest(std::uint32_t index) {
    slots[index].newer = none;
    slots[index].older = newest;
    (newest == none ? oldest : slots[newest].newer) = index;
    newest = index;
  }

  // Forgets the least recently used block; its slot keeps the memory.
  std::uint32_t drop_oldest() {
    const std::uint32_t index = oldest;
    unlink(index);
    slot_of[slots[index].id] = none;
    held -= slots[index].bytes;
    return index;
  }

  // A slot for a block of this size: a new one while the budget has room, else the oldest ones make room.
  std::uint32_t slot_for(std::uint64_t bytes) {
    std::uint32_t index = none;
    if (!unused.empty()) {
      index = unused.back();
      unused.pop_back();
    }
    while (held + bytes > budget && oldest != none) {
      if (index != none) {
        slots[index].block = Block{};  // two make room for one: the memory of one goes
        unused.push_back(index);
      }
      index = drop_oldest();
    }
    if (index != none) return index;
    slots.emplace_back();
    return static_cast<std::uint32_t>(slots.size() - 1);
  }

  const Block& read(std::size_t file, std::size_t id) {
    const std::int64_t first = static_cast<std::int64_t>(id - first_block[file]) * rows[file];
    const std::int64_t count = std::min(rows[file], dataset.files()[file].samples - first);
    const std::uint64_t bytes = static_cast<std::uint64_t>(count) * row_bytes;
    const std::uint32_t index = slot_for(bytes);
    Slot& slot = slots[index];
    try {
      reader->read(file, first, count, slot.block);
    } catch (...) {
      unused.push_back(index);
      throw;
    }
    ++reads;
    slot.id = id;
    slot.bytes = memory_of(slot.block);
    held += slot.bytes;
    slot_of[id] = index;
    link_newest(index);
    return slot.block;
  }
};

BlockCache::BlockCache(const Dataset& dataset, std::unique_ptr<Reader> reader, std::uint64_t budget_bytes)
    : state_(std::make_unique<State>(dataset, std::move(reader), budget_bytes)) {}
BlockCache::~BlockCache() = default;

const Block& BlockCache::with_sample(std::int64_t sample) {
  State& state = *state_;
  const DataFile& data = state.dataset.file_of(sample);
  const auto file = static_cast<std::size_t>(&data - state.dataset.files().data());
  const std::size_t id =
      state.first_block[file] + static_cast<std::size_t>((sample - data.first_sample) / state.rows[file]);
  const std::uint32_t index = state.slot_of[id];
  if (index == none) return state.read(file, id);
  if (index != state.newest) {
    state.unlink(index);
    state.link_newest(index);
  }
  return state.slots[index].block;
}

std::uint64_t BlockCache::blocks_read() const { return state_->reads; }

}  // namespace trireme::io
