// Sizes of kernel arguments that disagree.
#include "core/base/error.h"
#include "core/device/cuda/kernels.h"

namespace trireme::device::cuda {

void check_sizes(const char* kernel, std::size_t into, std::size_t left, std::size_t right) {
  if (into != left || into != right)
    fail(ExitCode::internal, "kernel {}: {} elements from {} and {}", kernel, into, left, right);
}

void check_squares(const char* kernel, std::size_t elements, std::size_t squares) {
  if (squares != tiles_of(elements))
    fail(ExitCode::internal, "kernel {}: {} squares for {} tiles", kernel, squares, tiles_of(elements));
}

void check_update(const UpdateArguments& a, std::size_t most_tiles) {
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
  if (a.tile_squares.size() > most_tiles)
    fail(ExitCode::internal, "kernel update: {} tiles, its norm adds at most {}", a.tile_squares.size(), most_tiles);
}

}  // namespace trireme::device::cuda
