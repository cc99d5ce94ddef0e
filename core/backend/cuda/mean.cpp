// mean of all elements, f64.
#include "core/backend/cuda/total.h"

namespace trireme::backend::cuda {
namespace {
namespace mean {

void forward(const Forward& f) {
  total(f.in[0], static_cast<double>(f.in[0].elements()), f.out[0], f.scratch, f.stream);
}

void backward(const Backward& b) {
  const Tensor dx = tensor_or_none(b.in_grads, 0);
  if (dx) spread(scalar(tensor_or_none(b.out_grads, 0)), static_cast<double>(b.in[0].elements()), dx, b.stream);
}

}  // namespace mean
}  // namespace

OpKernels mean_kernels() { return {mean::forward, mean::backward}; }

}  // namespace trireme::backend::cuda
