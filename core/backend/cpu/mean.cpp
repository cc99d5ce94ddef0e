// mean of all elements, f64.
#include "core/backend/cpu/total.h"

namespace trireme::backend {
namespace {
namespace mean {

void forward(const Forward& f) {
  *f.out[0].as<double>() = total(f.in[0], f.scratch) / static_cast<double>(f.in[0].elements());
}

void backward(const Backward& b) {
  if (!tensor_or_none(b.in_grads, 0)) return;
  const double each = scalar(b.out_grads[0]) / static_cast<double>(b.in[0].elements());
  fill_all(b.in_grads[0], static_cast<float>(each));
}

}  // namespace mean
}  // namespace

OpKernels mean_kernels() { return {mean::forward, mean::backward}; }

}  // namespace trireme::backend
