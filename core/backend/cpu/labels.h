// Class labels of any integer type, checked.
#pragma once

#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace trireme::backend {

// The labels as i64 (in `scratch` unless they are already). Throws Error(data) that names `op` and the first row whose
// label is neither in [0, classes) nor `ignored`.
[[nodiscard]] std::span<const std::int64_t> checked_labels(std::string_view op, const tensor::Tensor& labels,
                                                           std::int64_t classes, std::int64_t ignored,
                                                           tensor::Arena& scratch);

}  // namespace trireme::backend
