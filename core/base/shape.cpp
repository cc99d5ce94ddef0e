// Extents of a tensor: checks and derived shapes.
#include "core/base/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 58;  // of 8 bytes: sums of sizes stay in 64 bits

std::string text_of(std::span<const std::int64_t> dims) {
  std::string text = "(";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  }
  return text + (dims.size() == 1 ? ",)" : ")");
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > max_rank) {
    fail(ExitCode::internal, "shape {} has {} dimensions; at most {} are possible", text_of(dims), dims.size(),
         max_rank);
  }
  for (const std::int64_t dim : dims) {
    if (dim < 0) fail(ExitCode::internal, "shape {}: an extent is negative", text_of(dims));
  }
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) {
    elements_ = 0;
    return;
  }
  for (const std::int64_t dim : dims) {
    if (elements_ > max_elements / dim) {
      fail(ExitCode::internal, "shape {} has more than 2^58 elements", text_of(dims));
    }
    elements_ *= dim;
  }
}

std::int64_t Shape::operator[](int dim) const {
  const int index = dim < 0 ? dim + rank_ : dim;
  if (index < 0 || index >= rank_) {
    fail(ExitCode::internal, "dimension {} of shape {}, which has {}", dim, text(), rank_);
  }
  return dims_[static_cast<std::size_t>(index)];
}

std::int64_t Shape::elements(int first, int last) const {
  if (first < 0 || last > rank_ || first > last) {
    fail(ExitCode::internal, "dimensions [{}, {}) of shape {}, which has {}", first, last, text(), rank_);
  }
  // The factors may overflow where another extent is 0, so they are checked again.
  return Shape(dims().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first))).elements_;
}

Shape Shape::with_rows(std::int64_t rows) const {
  if (rank_ == 0) fail(ExitCode::internal, "a scalar has no rows to replace by {}", rows);
  std::array<std::int64_t, max_rank> dims = dims_;
  dims[0] = rows;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_)));
}

Shape Shape::batched(std::int64_t rows) const {
  if (rank_ == max_rank) {
    fail(ExitCode::internal, "shape {} has no room for a batch dimension of {}; at most {} are possible", text(), rows,
         max_rank);
  }
  std::array<std::int64_t, max_rank> dims{rows};
  std::copy_n(dims_.begin(), rank_, dims.begin() + 1);
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) + 1));
}

Shape Shape::without_first() const {
  if (rank_ == 0) fail(ExitCode::internal, "a scalar has no first dimension to remove");
  return Shape(dims().subspan(1));
}

std::string Shape::text() const { return text_of(dims()); }

}  // namespace trireme
