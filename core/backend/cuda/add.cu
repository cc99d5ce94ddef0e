// add: b as a, or a row of a's columns.
#include "core/backend/cuda/columns.h"
#include "core/backend/cuda/launch.h"
#include "core/device/cuda/kernels.h"

namespace trireme::backend::cuda {
namespace {
namespace add {

__global__ void add_row_kernel(const float* a, const float* row, float* y, std::size_t count, std::size_t columns) {
  for_each_element(count, [&](std::size_t i) { y[i] = a[i] + row[i % columns]; });
}

void forward(const Forward& f) {
  const std::size_t size = count(f.out[0]);
  if (size == 0) return;
  if (f.in[0].shape == f.in[1].shape) {
    device::cuda::add(f.out[0].span<float>(), f.in[0].span<const float>(), f.in[1].span<const float>(), {}, f.stream);
    return;
  }
  launch("add row", add_row_kernel, blocks_for(size), threads_per_block, f.stream, f.in[0].as<float>(),
         f.in[1].as<float>(), f.out[0].as<float>(), size, columns_of(f.in[0]));
}

void backward(const Backward& b) {
  const Tensor dy = tensor_or_none(b.out_grads, 0), da = tensor_or_none(b.in_grads, 0),
               db = tensor_or_none(b.in_grads, 1);
  if (da) copy_elements(dy, da, b.stream);
  if (!db) return;
  if (b.in[0].shape == b.in[1].shape) {
    copy_elements(dy, db, b.stream);
  } else {
    column_sums(dy.as<float>(), nullptr, rows_of(b.in[0]), columns_of(b.in[0]), db.as<float>(), b.scratch, b.stream);
  }
}

}  // namespace add
}  // namespace

OpKernels add_kernels() { return {add::forward, add::backward}; }

}  // namespace trireme::backend::cuda
