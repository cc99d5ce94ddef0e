// Memory of gradients in backward. A gradient lives from its first contribution until its producer's backward ran, so
// the same few blocks go round and stay in cache.
#pragma once

#include <vector>

#include "core/tensor/arena.h"

namespace trireme::autograd {

// Blocks come from the micro-batch's arena: clear() before that is reset. Compute thread only.
class GradientPool {
 public:
  // The smallest free block that holds it, or new memory. Not zeroed.
  [[nodiscard]] tensor::Tensor take(const Shape& shape, Dtype dtype, tensor::Arena& arena);
  void give_back(const tensor::Tensor& tensor);  // one that take() gave
  void clear() { blocks_.clear(); }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
    bool free;
  };
  std::vector<Block> blocks_;
};

}  // namespace trireme::autograd
