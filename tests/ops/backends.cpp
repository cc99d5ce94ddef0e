// The list of backends under test.
#include "tests/ops/backends.h"

#include <cstdlib>
#include <vector>

#include "core/backend/cpu/cpu.h"
#include "core/backend/cuda/cuda.h"
#include "core/device/module.h"

namespace trireme::ops::testing {
namespace {

std::shared_ptr<device::Device> cuda_device() { return device::make_cuda(0); }

const Backend& cuda_backend() {
  (void)cuda_device();
  return *reinterpret_cast<backend::GetCudaBackend>(device::cuda_symbol(backend::cuda_backend_symbol))(false);
}

}  // namespace

std::span<const BackendUnderTest> backends() {
  static const std::vector<BackendUnderTest> all = [] {
    std::vector<BackendUnderTest> list{{"cpu", device::make_cpu, backend::cpu_backend}};
    if (std::getenv(device::cuda_module_variable) != nullptr) list.push_back({"cuda", cuda_device, cuda_backend});
    return list;
  }();
  return all;
}

}  // namespace trireme::ops::testing
