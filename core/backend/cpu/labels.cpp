// Class labels, checked.
#include "core/backend/cpu/labels.h"

#include <algorithm>

#include "core/base/error.h"

namespace trireme::backend {
namespace {

template <class Integer>
std::span<const std::int64_t> widened(std::span<const Integer> labels, tensor::Arena& scratch) {
  auto* memory = static_cast<std::int64_t*>(scratch.allocate(labels.size() * sizeof(std::int64_t)));
  std::copy(labels.begin(), labels.end(), memory);
  return {memory, labels.size()};
}

}  // namespace

std::span<const std::int64_t> checked_labels(std::string_view op, const tensor::Tensor& labels, std::int64_t classes,
                                             std::int64_t ignored, tensor::Arena& scratch) {
  std::span<const std::int64_t> values;
  switch (labels.dtype) {
    case Dtype::i64: values = labels.span<const std::int64_t>(); break;
    case Dtype::i32: values = widened(labels.span<const std::int32_t>(), scratch); break;
    case Dtype::u8: values = widened(labels.span<const std::uint8_t>(), scratch); break;
    default: fail(ExitCode::internal, "{}: labels of type {}", op, name_of(labels.dtype));
  }
  for (std::size_t row = 0; row < values.size(); ++row) {
    if ((values[row] >= 0 && values[row] < classes) || values[row] == ignored) continue;
    fail(ExitCode::data, "{}: row {} of the micro-batch has label {}, outside [0, {}) and not ignore_index ({})", op,
         row, values[row], classes, ignored);
  }
  return values;
}

}  // namespace trireme::backend
