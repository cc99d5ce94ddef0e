// convert to f32 with scale and shift.
#include "core/backend/cpu/kernels.h"
#include "core/base/error.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace convert {

template <class From>
[[gnu::always_inline]] inline void convert_each(const From* x, float* y, std::size_t count, float scale, float shift) {
  for (std::size_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i]) * scale + shift;
}

// One function a type: the loader's choice of instruction set does not go with templates.
TRIREME_SIMD void from_u8(const std::uint8_t* x, float* y, std::size_t count, float scale, float shift) {
  convert_each(x, y, count, scale, shift);
}
TRIREME_SIMD void from_i32(const std::int32_t* x, float* y, std::size_t count, float scale, float shift) {
  convert_each(x, y, count, scale, shift);
}
TRIREME_SIMD void from_i64(const std::int64_t* x, float* y, std::size_t count, float scale, float shift) {
  convert_each(x, y, count, scale, shift);
}
TRIREME_SIMD void from_f32(const float* x, float* y, std::size_t count, float scale, float shift) {
  convert_each(x, y, count, scale, shift);
}
TRIREME_SIMD void from_f64(const double* x, float* y, std::size_t count, float scale, float shift) {
  convert_each(x, y, count, scale, shift);
}

template <class From>
void run(const Forward& f, void (*leaf)(const From*, float*, std::size_t, float, float)) {
  const auto scale = static_cast<float>(f.attributes.number("scale"));
  const auto shift = static_cast<float>(f.attributes.number("shift"));
  parallel_for(count(f.in[0]), grain, [&](std::size_t begin, std::size_t end) {
    leaf(f.in[0].as<From>() + begin, f.out[0].as<float>() + begin, end - begin, scale, shift);
  });
}

void forward(const Forward& f) {
  switch (f.in[0].dtype) {
    case Dtype::u8:
    case Dtype::boolean: return run<std::uint8_t>(f, from_u8);
    case Dtype::i32: return run<std::int32_t>(f, from_i32);
    case Dtype::i64: return run<std::int64_t>(f, from_i64);
    case Dtype::f32: return run<float>(f, from_f32);
    case Dtype::f64: return run<double>(f, from_f64);
    default: fail(ExitCode::internal, "convert: no kernel from {}", name_of(f.in[0].dtype));
  }
}

}  // namespace convert
}  // namespace

OpKernels convert_kernels() { return {convert::forward, nullptr}; }

}  // namespace trireme::backend
