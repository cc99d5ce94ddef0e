// A typed, dense, row-major view of memory that an arena owns. Images are channels-last: (B, H, W, C).
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/base/shape.h"

namespace trireme::tensor {

struct Tensor {
  void* data = nullptr;  // device memory; null: no tensor (or, in a shape pass, not yet placed)
  Shape shape;
  Dtype dtype = Dtype::f32;

  [[nodiscard]] std::int64_t elements() const { return shape.elements(); }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
  // Elements as T; T's size must be the dtype's.
  template <class T>
  [[nodiscard]] std::span<T> span() const {
    return {static_cast<T*>(data), static_cast<std::size_t>(elements())};
  }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data);
  }
  [[nodiscard]] explicit operator bool() const { return data != nullptr; }
};

}  // namespace trireme::tensor
