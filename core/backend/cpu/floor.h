// The floor of an op's kernel on this processor: the least that the same work takes without anything around it.
// Products and convolutions: oneDNN's own primitive at the same shape, the better of channels-last and oneDNN's own
// layouts, reorders left out. All else: a copy that moves as many bytes as the op must read and write, wandering
// through memory of the size that a whole step works in, so that caches help the floor as much as they help the op.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace trireme::backend {

// A call as the tape tells it; data pointers are not used.
struct FloorCall {
  std::string_view op;
  bool backward = false;
  std::span<const tensor::Tensor> in, out, saved, in_grads;  // in_grads: those with data are wanted
  const ops::Attributes& attributes;
};

// Seconds, the best of several runs with the threads of the calling thread; takes some tens of milliseconds.
// `working_set`: bytes that a step touches.
[[nodiscard]] double floor_seconds(const FloorCall& call, std::size_t working_set);
// Seconds to read and write so many bytes once.
[[nodiscard]] double copy_seconds(std::size_t bytes_read, std::size_t bytes_written, std::size_t working_set);

}  // namespace trireme::backend
