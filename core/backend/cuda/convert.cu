// convert to f32 with scale and shift.
#include "core/backend/cuda/launch.h"
#include "core/device/cuda/check.h"

namespace trireme::backend::cuda {
namespace {
namespace convert {

template <class From>
__global__ void convert_kernel(const From* x, float* y, std::size_t count, float scale, float shift) {
  for_each_element(count, [&](std::size_t i) { y[i] = static_cast<float>(x[i]) * scale + shift; });
}

template <class From>
void run(const Forward& f) {
  const std::size_t size = count(f.in[0]);
  if (size == 0) return;
  launch("convert", convert_kernel<From>, blocks_for(size), threads_per_block, f.stream, f.in[0].as<const From>(),
         f.out[0].as<float>(), size, static_cast<float>(f.attributes.number("scale")),
         static_cast<float>(f.attributes.number("shift")));
}

void forward(const Forward& f) {
  switch (f.in[0].dtype) {
    case Dtype::u8:
    case Dtype::boolean: return run<std::uint8_t>(f);
    case Dtype::i32: return run<std::int32_t>(f);
    case Dtype::i64: return run<std::int64_t>(f);
    case Dtype::f32: return run<float>(f);
    case Dtype::f64: return run<double>(f);
    default: device::cuda::check(cudaErrorInvalidValue, "convert: no kernel from this type");
  }
}

}  // namespace convert
}  // namespace

OpKernels convert_kernels() { return {convert::forward, nullptr}; }

}  // namespace trireme::backend::cuda
