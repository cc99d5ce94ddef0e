// relu. NaN stays NaN.
#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace relu {

TRIREME_SIMD void relu_range(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}

void forward(const Forward& f) {
  const auto* x = f.in[0].as<float>();
  auto* y = f.out[0].as<float>();
  parallel_for(count(f.in[0]), grain,
               [&](std::size_t begin, std::size_t end) { relu_range(x + begin, y + begin, end - begin); });
}

void backward(const Backward& b) {
  if (!tensor_or_none(b.in_grads, 0)) return;
  relu_gradient(b.out_grads[0].as<float>(), b.out[0].as<float>(), b.in_grads[0].as<float>(), 1, count(b.out[0]),
                nullptr, b.scratch);
}

}  // namespace relu
}  // namespace

OpKernels relu_kernels() { return {relu::forward, relu::backward}; }

}  // namespace trireme::backend
