// reshape: the same elements under another shape. Copies only where the caller gave separate memory.
#include "core/backend/cpu/kernels.h"

namespace trireme::backend {
namespace {
namespace reshape {

void forward(const Forward& f) { copy_elements(f.in[0], f.out[0]); }

void backward(const Backward& b) {
  if (tensor_or_none(b.in_grads, 0)) copy_elements(b.out_grads[0], b.in_grads[0]);
}

}  // namespace reshape
}  // namespace

OpKernels reshape_kernels() { return {reshape::forward, reshape::backward}; }

}  // namespace trireme::backend
