// sum of all elements, f64.
#include "core/backend/cpu/total.h"

namespace trireme::backend {
namespace {
namespace sum {

void forward(const Forward& f) { *f.out[0].as<double>() = total(f.in[0], f.scratch); }

void backward(const Backward& b) {
  if (tensor_or_none(b.in_grads, 0)) fill_all(b.in_grads[0], static_cast<float>(scalar(b.out_grads[0])));
}

}  // namespace sum
}  // namespace

OpKernels sum_kernels() { return {sum::forward, sum::backward}; }

}  // namespace trireme::backend
