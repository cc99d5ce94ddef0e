// sum of all elements, f64.
#include "core/backend/cuda/total.h"

namespace trireme::backend::cuda {
namespace {
namespace sum {

void forward(const Forward& f) { total(f.in[0], 1, f.out[0], f.scratch, f.stream); }

void backward(const Backward& b) {
  const Tensor dx = tensor_or_none(b.in_grads, 0);
  if (dx) spread(scalar(tensor_or_none(b.out_grads, 0)), 1, dx, b.stream);
}

}  // namespace sum
}  // namespace

OpKernels sum_kernels() { return {sum::forward, sum::backward}; }

}  // namespace trireme::backend::cuda
