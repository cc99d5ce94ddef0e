// The table of kernels, and what several of them share.
#include "core/backend/cpu/cpu.h"

#include <cstring>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/onednn.h"
#include "core/base/error.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {

TRIREME_SIMD void relu_range(float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = y[i] < 0 ? 0 : y[i];
}

TRIREME_SIMD void add_range(float* into, const float* addend, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += addend[i];
}

class CpuBackend final : public ops::Backend {
 public:
  CpuBackend() {
    const std::pair<std::string_view, OpKernels> table[] = {
        {"accuracy", accuracy_kernels()},
        {"add", add_kernels()},
        {"avg_pool2d", avg_pool2d_kernels()},
        {"batch_norm", batch_norm_kernels()},
        {"conv2d", conv2d_kernels()},
        {"convert", convert_kernels()},
        {"dropout", dropout_kernels()},
        {"flatten", flatten_kernels()},
        {"linear", linear_kernels()},
        {"max_pool2d", max_pool2d_kernels()},
        {"mean", mean_kernels()},
        {"mul", mul_kernels()},
        {"relu", relu_kernels()},
        {"reshape", reshape_kernels()},
        {"softmax_cross_entropy", softmax_cross_entropy_kernels()},
        {"sum", sum_kernels()},
    };
    kernels_.resize(ops::Registry::get().all().size());
    for (const auto& [name, kernels] : table) kernels_[ops::Registry::get().find(name, 1)] = kernels;
  }

  [[nodiscard]] const OpKernels& kernels(std::uint32_t op) const override { return kernels_.at(op); }

  void accumulate(const Tensor& into, const Tensor& addend, device::Stream&) const override {
    if (into.dtype != Dtype::f32 || addend.dtype != Dtype::f32 || into.elements() != addend.elements()) {
      fail(ExitCode::internal, "gradients that meet: {} {} and {} {} must both be f32 of one size", name_of(into.dtype),
           into.shape.text(), name_of(addend.dtype), addend.shape.text());
    }
    parallel_for(count(into), grain, [&](std::size_t begin, std::size_t end) {
      add_range(into.as<float>() + begin, addend.as<float>() + begin, end - begin);
    });
  }

 private:
  std::vector<OpKernels> kernels_;
};

}  // namespace

const ops::Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

std::string cpu_description() {
  const auto* version = dnnl_version();
  const auto isa = [] {
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::sse41: return "SSE4.1";
      case dnnl::cpu_isa::avx: return "AVX";
      case dnnl::cpu_isa::avx2: return "AVX2";
      case dnnl::cpu_isa::avx2_vnni: return "AVX2 with VNNI";
      case dnnl::cpu_isa::avx512_core: return "AVX-512";
      case dnnl::cpu_isa::avx512_core_vnni: return "AVX-512 with VNNI";
      case dnnl::cpu_isa::avx512_core_bf16: return "AVX-512 with bf16";
      case dnnl::cpu_isa::avx512_core_amx: return "AVX-512 with AMX";
      default: return "another instruction set";
    }
  }();
  return fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor, version->patch, isa);
}

double scalar(const Tensor& gradient) {
  if (!gradient) return 0;
  if (gradient.dtype == Dtype::f64) return *gradient.as<double>();
  if (gradient.dtype == Dtype::f32) return *gradient.as<float>();
  fail(ExitCode::internal, "a loss's gradient is f64 or f32, not {}", name_of(gradient.dtype));
}

void relu_in_place(std::span<float> y) {
  parallel_for(y.size(), grain, [&](std::size_t begin, std::size_t end) { relu_range(y.data() + begin, end - begin); });
}

void fill_zero(const Tensor& tensor) {
  auto* bytes = tensor.as<std::byte>();
  parallel_for(tensor.bytes(), grain * sizeof(float),
               [&](std::size_t begin, std::size_t end) { std::memset(bytes + begin, 0, end - begin); });
}

void copy_elements(const Tensor& from, const Tensor& to) {
  if (from.data == to.data) return;
  const auto* source = from.as<const std::byte>();
  auto* target = to.as<std::byte>();
  parallel_for(to.bytes(), grain * sizeof(float),
               [&](std::size_t begin, std::size_t end) { std::memcpy(target + begin, source + begin, end - begin); });
}

}  // namespace trireme::backend
