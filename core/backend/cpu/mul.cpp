// mul: b as a, or a row of a's columns.
#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace mul {

TRIREME_SIMD void multiply_range(const float* a, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

// y = a · b, b being one row for all rows of a where its shape is another.
void product(const Tensor& a, const Tensor& b, const Tensor& y) {
  const auto *left = a.as<float>(), *right = b.as<float>();
  auto* into = y.as<float>();
  if (a.elements() == b.elements()) {
    parallel_for(count(y), grain, [&](std::size_t begin, std::size_t end) {
      multiply_range(left + begin, right + begin, into + begin, end - begin);
    });
    return;
  }
  const std::size_t columns = columns_of(a);
  if (columns == 0) return;
  parallel_for(rows_of(a), grain / columns + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      multiply_range(left + i * columns, right, into + i * columns, columns);
    }
  });
}

void forward(const Forward& f) { product(f.in[0], f.in[1], f.out[0]); }

void backward(const Backward& b) {
  const Tensor& dy = b.out_grads[0];
  const Tensor da = tensor_or_none(b.in_grads, 0), db = tensor_or_none(b.in_grads, 1);
  if (da) product(dy, b.in[1], da);
  if (!db) return;
  if (b.in[0].shape == b.in[1].shape) {
    product(dy, b.in[0], db);
    return;
  }
  const Tensor each = b.scratch.allocate(dy.shape, Dtype::f32);
  product(dy, b.in[0], each);
  column_sums(each.as<float>(), rows_of(dy), columns_of(dy), db.as<float>(), b.scratch);
}

}  // namespace mul
}  // namespace

OpKernels mul_kernels() { return {mul::forward, mul::backward}; }

}  // namespace trireme::backend
