// The declaration of each op, for the registry.
#pragma once

#include "core/ops/op.h"

namespace trireme::ops {

[[nodiscard]] Op accuracy_op();
[[nodiscard]] Op add_op();
[[nodiscard]] Op avg_pool2d_op();
[[nodiscard]] Op batch_norm_op();
[[nodiscard]] Op conv2d_op();
[[nodiscard]] Op convert_op();
[[nodiscard]] Op dropout_op();
[[nodiscard]] Op flatten_op();
[[nodiscard]] Op linear_op();
[[nodiscard]] Op max_pool2d_op();
[[nodiscard]] Op mean_op();
[[nodiscard]] Op mul_op();
[[nodiscard]] Op relu_op();
[[nodiscard]] Op reshape_op();
[[nodiscard]] Op softmax_cross_entropy_op();
[[nodiscard]] Op sum_op();

}  // namespace trireme::ops
