// Memory of one micro-batch: bump allocation, reset at its end. Grows by blocks during the first steps; a steady
// step allocates nothing. Compute thread only.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/device/device.h"
#include "core/tensor/tensor.h"

namespace trireme::tensor {

class Arena {
 public:
  explicit Arena(std::shared_ptr<device::Device> device, std::size_t block_bytes = std::size_t{4} << 20);

  // 64-byte aligned, not zeroed.
  [[nodiscard]] void* allocate(std::size_t bytes);
  [[nodiscard]] Tensor allocate(const Shape& shape, Dtype dtype);

  struct Mark {
    std::size_t block = 0, used = 0;
  };
  [[nodiscard]] Mark mark() const;
  void rewind(Mark mark);  // what was allocated since is free again
  // Empties the arena; after a micro-batch that took several blocks they become one of the sum of their sizes.
  void reset();
  [[nodiscard]] std::size_t peak_bytes() const;

 private:
  std::shared_ptr<device::Device> device_;
  std::vector<device::Buffer> blocks_;
  std::size_t block_bytes_;
  Mark at_{};
  std::size_t peak_ = 0;
};

}  // namespace trireme::tensor
