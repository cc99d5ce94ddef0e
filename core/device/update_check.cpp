// Sizes of an update's arguments that disagree, on any device.
#include "core/base/error.h"
#include "core/device/kernels.h"

namespace trireme::device {

void check_update(const UpdateArguments& a) {
  const std::size_t size = a.parameters.size();
  const bool adamw = a.rule.kind == UpdateRule::Kind::adamw;
  const std::size_t first = adamw || a.rule.momentum != 0 ? size : a.moment1.size();
  const std::size_t second = adamw ? size : a.moment2.size();
  if (a.gradients.size() != size || a.moment1.size() != first || a.moment2.size() != second ||
      a.tile_squares.size() != tiles_of(size))
    fail(ExitCode::internal, "kernel update: {} parameters with {} gradients, {} and {} moments, {} tile squares", size,
         a.gradients.size(), a.moment1.size(), a.moment2.size(), a.tile_squares.size());
  if (a.buffers.size() != a.buffer_sums.size())
    fail(ExitCode::internal, "kernel update: {} buffer elements with {} sums", a.buffers.size(), a.buffer_sums.size());
}

}  // namespace trireme::device
