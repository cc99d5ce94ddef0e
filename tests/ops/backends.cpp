// The list of backends under test.
#include "tests/ops/backends.h"

#include <array>

#include "core/backend/cpu/cpu.h"

namespace trireme::ops::testing {

std::span<const BackendUnderTest> backends() {
  static const std::array all{BackendUnderTest{"cpu", device::make_cpu, backend::cpu_backend}};
  return all;
}

}  // namespace trireme::ops::testing
