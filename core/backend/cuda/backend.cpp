// The CUDA backend's table of ops, and the symbol by which it is found in the module.
#include <vector>

#include "core/backend/cuda/kernels.h"
#include "core/device/cuda/kernels.h"

namespace trireme::backend::cuda {
namespace {

class CudaBackend final : public ops::Backend {
 public:
  CudaBackend() : kernels_(ops::Registry::get().all().size()) {
    kernels_[ops::Registry::get().find("relu", 1)] = relu_kernels();
  }
  [[nodiscard]] const ops::OpKernels& kernels(std::uint32_t op) const override { return kernels_[op]; }
  void accumulate(const tensor::Tensor& into, const tensor::Tensor& addend, device::Stream& stream) const override {
    device::cuda::add(into.span<float>(), into.span<float>(), addend.span<const float>(), {}, stream);
  }

 private:
  std::vector<ops::OpKernels> kernels_;  // by id; null: not on this backend
};

}  // namespace
}  // namespace trireme::backend::cuda

extern "C" __attribute__((visibility("default"))) const trireme::ops::Backend* trireme_cuda_backend() {
  static const trireme::backend::cuda::CudaBackend backend;
  return &backend;
}
