// tensor.h: a value of the running micro-batch.
//
//   Tensor x = batch["image"];                      // (B, 28, 28)
//   Tensor flat = x.flatten(1);                     // (B, 784), the same memory
//   Tensor image = x.reshape({-1, 28, 28, 1});      // one extent may be -1: what is left
//   for (float& value : buffer.span<float>()) …     // raw elements, on the CPU
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "context.h"

namespace trireme {
inline namespace sdk {

// The element types of C++ as the core knows them; f16 and bf16 have none.
template <class T>
struct DtypeOf;
template <>
struct DtypeOf<double> {
  static constexpr trireme_dtype value = TRIREME_F64;
};
template <>
struct DtypeOf<float> {
  static constexpr trireme_dtype value = TRIREME_F32;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr trireme_dtype value = TRIREME_I64;
};
template <>
struct DtypeOf<std::int32_t> {
  static constexpr trireme_dtype value = TRIREME_I32;
};
template <>
struct DtypeOf<std::uint8_t> {
  static constexpr trireme_dtype value = TRIREME_U8;
};
template <>
struct DtypeOf<bool> {
  static constexpr trireme_dtype value = TRIREME_BOOL;
};

namespace detail {

inline trireme_shape shape_of(std::span<const std::int64_t> dims) {
  if (dims.size() > TRIREME_MAX_RANK) throw Error("a shape has more than 8 dimensions");
  trireme_shape shape{};
  shape.rank = static_cast<std::int32_t>(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) shape.dims[i] = dims[i];
  return shape;
}
inline trireme_shape shape_of(std::initializer_list<std::int64_t> dims) {
  return shape_of(std::span<const std::int64_t>(dims.begin(), dims.size()));
}

}  // namespace detail

// A handle: cheap to copy, invalid once its micro-batch ends (then refused, never read).
class Tensor {
 public:
  Tensor() = default;
  Tensor(detail::Context& context, trireme_tensor id) : context_(&context), id_(id) {}

  [[nodiscard]] trireme_tensor id() const { return id_; }
  [[nodiscard]] explicit operator bool() const { return id_ != 0; }
  [[nodiscard]] detail::Context& context() const {
    if (context_ == nullptr) throw Error("an empty tensor was used");
    return *context_;
  }

  [[nodiscard]] trireme_shape shape() const {
    trireme_shape shape{};
    trireme_dtype dtype{};
    context().check(context().host().shape(context().core(), id_, &shape, &dtype));
    return shape;
  }
  [[nodiscard]] trireme_dtype dtype() const {
    trireme_shape shape{};
    trireme_dtype dtype{};
    context().check(context().host().shape(context().core(), id_, &shape, &dtype));
    return dtype;
  }
  [[nodiscard]] std::int32_t rank() const { return shape().rank; }
  // Extent i; negative counts from the end.
  [[nodiscard]] std::int64_t extent(std::int32_t i) const {
    const trireme_shape s = shape();
    const std::int32_t at = i < 0 ? i + s.rank : i;
    if (at < 0 || at >= s.rank) {
      throw Error("dimension " + std::to_string(i) + " of a tensor that has " + std::to_string(s.rank));
    }
    return s.dims[at];
  }
  [[nodiscard]] std::int64_t size() const {
    const trireme_shape s = shape();
    std::int64_t elements = 1;
    for (std::int32_t i = 0; i < s.rank; ++i) elements *= s.dims[i];
    return elements;
  }

  // Where it lies; computes it first.
  [[nodiscard]] trireme_view view() const {
    trireme_view v{};
    context().check(context().host().view(context().core(), id_, &v));
    return v;
  }
  // All elements in row-major order; on the CPU, and of this type only.
  template <class T>
  [[nodiscard]] std::span<T> span() const {
    const trireme_view v = view();
    if (v.device != TRIREME_CPU) throw Error("span: the tensor lies on the GPU; view().data is its address there");
    if (v.dtype != DtypeOf<T>::value) throw Error("span: the tensor has another element type");
    return {static_cast<T*>(v.data), static_cast<std::size_t>(size())};
  }

  // The same elements under another shape. No copy.
  [[nodiscard]] Tensor flatten(std::int64_t first) const;  // joins the dimensions from `first` on
  [[nodiscard]] Tensor reshape(std::initializer_list<std::int64_t> dims) const;

 private:
  detail::Context* context_ = nullptr;
  trireme_tensor id_ = 0;
};

}  // namespace sdk
}  // namespace trireme
