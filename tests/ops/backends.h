// The backends that the op tests run on: the CPU's, and the CUDA module's where TRIREME_CUDA_MODULE names one.
#pragma once

#include <memory>
#include <span>

#include "core/device/device.h"
#include "core/ops/op.h"

namespace trireme::ops::testing {

struct BackendUnderTest {
  const char* name;
  std::shared_ptr<device::Device> (*make_device)();
  const Backend& (*backend)();
};

[[nodiscard]] std::span<const BackendUnderTest> backends();

}  // namespace trireme::ops::testing
