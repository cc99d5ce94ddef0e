// Best fit over a handful of blocks.
#include "core/autograd/gradient_pool.h"

#include <algorithm>

namespace trireme::autograd {

tensor::Tensor GradientPool::take(const Shape& shape, Dtype dtype, tensor::Arena& arena) {
  tensor::Tensor tensor{nullptr, shape, dtype};
  const std::size_t bytes = tensor.bytes();
  Block* best = nullptr;
  for (auto& block : blocks_) {
    if (block.free && block.bytes >= bytes && (best == nullptr || block.bytes < best->bytes)) best = &block;
  }
  if (best == nullptr) best = &blocks_.emplace_back(Block{arena.allocate(bytes), bytes, true});
  best->free = false;
  tensor.data = best->data;
  return tensor;
}

void GradientPool::give_back(const tensor::Tensor& tensor) {
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.data == tensor.data; });
  if (block != blocks_.end()) block->free = true;
}

}  // namespace trireme::autograd
