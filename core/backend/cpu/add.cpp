// add: b as a, or a row of a's columns.
#include "core/backend/cpu/columns.h"
#include "core/backend/cpu/kernels.h"
#include "core/base/simd.h"
#include "core/base/threads.h"

namespace trireme::backend {
namespace {
namespace add {

TRIREME_SIMD void add_range(const float* a, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

void forward(const Forward& f) {
  const auto *a = f.in[0].as<float>(), *b = f.in[1].as<float>();
  auto* y = f.out[0].as<float>();
  if (f.in[0].shape == f.in[1].shape) {
    parallel_for(count(f.out[0]), grain,
                 [&](std::size_t begin, std::size_t end) { add_range(a + begin, b + begin, y + begin, end - begin); });
    return;
  }
  const std::size_t columns = columns_of(f.in[0]);
  if (columns == 0) return;
  parallel_for(rows_of(f.in[0]), grain / columns + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) add_range(a + i * columns, b, y + i * columns, columns);
  });
}

void backward(const Backward& b) {
  const Tensor& dy = b.out_grads[0];
  const Tensor da = tensor_or_none(b.in_grads, 0), db = tensor_or_none(b.in_grads, 1);
  if (da) copy_elements(dy, da);
  if (!db) return;
  if (b.in[0].shape == b.in[1].shape) {
    copy_elements(dy, db);
  } else {
    column_sums(dy.as<float>(), rows_of(dy), columns_of(dy), db.as<float>(), b.scratch);
  }
}

}  // namespace add
}  // namespace

OpKernels add_kernels() { return {add::forward, add::backward}; }

}  // namespace trireme::backend
