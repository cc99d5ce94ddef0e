// tree_sum: neighbours are added level by level, an odd last one is carried up; as if padded with zeros to a
// power of two.
#include <bit>

#include "core/device/kernels.h"

namespace trireme::device {

double tree_sum(std::span<const double> values) {
  if (values.empty()) return 0.0;
  if (values.size() == 1) return values[0];
  const std::size_t half = std::bit_floor(values.size() - 1);
  return tree_sum(values.first(half)) + tree_sum(values.subspan(half));
}

}  // namespace trireme::device
