// The CUDA backend's table of ops, and the symbols by which it is found in the module.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "core/backend/cuda/cuda.h"
#include "core/backend/cuda/kernels.h"
#include "core/base/error.h"
#include "core/device/cuda/check.h"
#include "core/device/cuda/kernels.h"

namespace trireme::backend::cuda {
namespace {

class CudaBackend final : public ops::Backend {
 public:
  explicit CudaBackend(bool tf32) : kernels_(ops::Registry::get().all().size()) {
    const std::pair<std::string_view, OpKernels> table[] = {
        {"accuracy", accuracy_kernels()},
        {"add", add_kernels()},
        {"convert", convert_kernels()},
        {"dropout", dropout_kernels()},
        {"flatten", flatten_kernels()},
        {"linear", linear_kernels(tf32)},
        {"mean", mean_kernels()},
        {"mul", mul_kernels()},
        {"relu", relu_kernels()},
        {"reshape", reshape_kernels()},
        {"softmax_cross_entropy", softmax_cross_entropy_kernels()},
        {"sum", sum_kernels()},
    };
    for (const auto& [name, kernels] : table) kernels_[ops::Registry::get().find(name, 1)] = kernels;
  }
  [[nodiscard]] const OpKernels& kernels(std::uint32_t op) const override { return kernels_.at(op); }
  void accumulate(const Tensor& into, const Tensor& addend, device::Stream& stream) const override {
    if (into.dtype != Dtype::f32 || addend.dtype != Dtype::f32 || into.elements() != addend.elements()) {
      fail(ExitCode::internal, "gradients that meet: {} {} and {} {} must both be f32 of one size", name_of(into.dtype),
           into.shape.text(), name_of(addend.dtype), addend.shape.text());
    }
    device::cuda::add(into.span<float>(), into.span<float>(), addend.span<const float>(), {}, stream);
  }

 private:
  std::vector<OpKernels> kernels_;  // by id; null: not on this backend
};

std::string cuda_version(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

std::string cublas_version(std::size_t code) {  // 130002 → 13.0.2; before 13: 120400 → 12.4.0
  return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

std::string describe() {
  int driver = 0, run_time = 0;
  device::cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  device::cuda::check(cudaRuntimeGetVersion(&run_time), "cudaRuntimeGetVersion");
  constexpr std::size_t built = CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
  return fmt::format("driver {}, CUDA {} (built with {}), cuBLASLt {} (built with {})", cuda_version(driver),
                     cuda_version(run_time), cuda_version(CUDART_VERSION), cublas_version(cublasLtGetVersion()),
                     cublas_version(built));
}

}  // namespace

Scalar scalar(const Tensor& gradient) {
  if (gradient && gradient.dtype != Dtype::f64 && gradient.dtype != Dtype::f32)
    fail(ExitCode::internal, "a loss's gradient is f64 or f32, not {}", name_of(gradient.dtype));
  return {gradient.data, gradient.dtype == Dtype::f64};
}

void copy_elements(const Tensor& from, const Tensor& to, device::Stream& stream) {
  if (from.data == to.data || to.bytes() == 0) return;
  if (!from) {
    device::cuda::fill(to.span<float>(), 0.0f, stream);
    return;
  }
  stream.copy({to.as<std::byte>(), to.bytes()}, {from.as<const std::byte>(), to.bytes()});
}

}  // namespace trireme::backend::cuda

extern "C" __attribute__((visibility("default"))) const trireme::ops::Backend* trireme_cuda_backend(bool tf32) {
  static const trireme::backend::cuda::CudaBackend f32_backend(false), tf32_backend(true);
  return tf32 ? &tf32_backend : &f32_backend;
}

extern "C" __attribute__((visibility("default"))) const char* trireme_cuda_description() {
  static const std::string text = trireme::backend::cuda::describe();
  return text.c_str();
}
