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
  device::check_update(a);
  if (a.tile_squares.size() > most_tiles)
    fail(ExitCode::internal, "kernel update: {} tiles, its norm adds at most {}", a.tile_squares.size(), most_tiles);
}

}  // namespace trireme::device::cuda
