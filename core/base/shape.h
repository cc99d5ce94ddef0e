// Extents of a tensor, row-major. At most 8 dimensions (TRIREME_MAX_RANK); allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace trireme {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;  // a scalar: rank 0, one element
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws on more than 8 dimensions, a negative one, or a product above 2^58 (whose bytes are no more than 2^61).
  explicit Shape(std::span<const std::int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  // Negative counts from the end: shape[-1] is the last. Throws out of range.
  [[nodiscard]] std::int64_t operator[](int dim) const;
  [[nodiscard]] std::span<const std::int64_t> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  // Product of the extents [first, last).
  [[nodiscard]] std::int64_t elements(int first, int last) const;
  // This shape with its first extent replaced; with an extent put in front.
  [[nodiscard]] Shape with_rows(std::int64_t rows) const;
  [[nodiscard]] Shape batched(std::int64_t rows) const;
  [[nodiscard]] Shape without_first() const;
  [[nodiscard]] std::string text() const;  // "(128, 28, 28)"

  friend bool operator==(const Shape& a, const Shape& b) { return a.rank_ == b.rank_ && a.dims_ == b.dims_; }

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
  std::int64_t elements_ = 1;
};

}  // namespace trireme
