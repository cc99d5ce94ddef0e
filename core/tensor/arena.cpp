// Bump allocation over device buffers.
#include "core/tensor/arena.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace trireme::tensor {

namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) { return std::max(alignment, (bytes + alignment - 1) / alignment * alignment); }

}  // namespace

Arena::Arena(std::shared_ptr<device::Device> device, std::size_t block_bytes)
    : device_(std::move(device)), block_bytes_(aligned(block_bytes)) {}

void* Arena::allocate(std::size_t bytes) {
  const std::size_t size = aligned(bytes);
  // A block too small for this request is skipped; the next reset() makes one block of all, so the waste is brief.
  while (at_.block < blocks_.size() && at_.used + size > blocks_[at_.block].bytes()) at_ = {at_.block + 1, 0};
  if (at_.block == blocks_.size()) blocks_.emplace_back(device_, std::max(size, block_bytes_));
  void* memory = blocks_[at_.block].span<std::byte>().data() + at_.used;
  at_.used += size;
  std::size_t in_use = at_.used;
  for (std::size_t i = 0; i < at_.block; ++i) in_use += blocks_[i].bytes();
  peak_ = std::max(peak_, in_use);
  return memory;
}

Tensor Arena::allocate(const Shape& shape, Dtype dtype) {
  Tensor tensor{nullptr, shape, dtype};
  tensor.data = allocate(tensor.bytes());
  return tensor;
}

Arena::Mark Arena::mark() const { return at_; }

void Arena::rewind(Mark mark) {
  if (mark.block > at_.block || (mark.block == at_.block && mark.used > at_.used)) {
    fail(ExitCode::internal,
         "arena: rewind to block {}, byte {}, which lies ahead of block {}, byte {}: a mark is valid until the "
         "arena is rewound before it or reset",
         mark.block, mark.used, at_.block, at_.used);
  }
  at_ = mark;
}

void Arena::reset() {
  at_ = {};
  if (blocks_.size() < 2) return;
  std::size_t total = 0;
  for (const auto& block : blocks_) total += block.bytes();
  blocks_.clear();  // before the new block: both at once might not fit
  blocks_.emplace_back(device_, total);
}

std::size_t Arena::peak_bytes() const { return peak_; }

}  // namespace trireme::tensor
