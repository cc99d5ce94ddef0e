// The arithmetic of cuBLASLt's matrix product, f32.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/cuda_emulation/cublaslt.h"

namespace trireme::cuda_emulation {

namespace {

// The bits that cublasLt.h builds its epilogues from.
constexpr std::uint32_t relu = 2, bias = 4, relu_gradient = 8, bias_gradient = 16, with_aux = 128;
static_assert(CUBLASLT_EPILOGUE_RELU == relu && CUBLASLT_EPILOGUE_BIAS == bias);
static_assert(CUBLASLT_EPILOGUE_RELU_AUX_BIAS == (relu | bias | with_aux));
static_assert(CUBLASLT_EPILOGUE_DRELU == (relu_gradient | with_aux));
static_assert(CUBLASLT_EPILOGUE_DRELU_BGRAD == (relu_gradient | bias_gradient | with_aux));

float to_tf32(float x) {  // to nearest, ties to even; NaN and infinity stay
  if (!std::isfinite(x)) return x;
  auto bits = std::bit_cast<std::uint32_t>(x);
  bits += 0xFFFu + (bits >> 13 & 1u);
  return std::bit_cast<float>(bits & ~0x1FFFu);
}

float relu_of(float x, bool keeps_nan) {
  if (std::isnan(x)) return keeps_nan ? x : 0.0f;
  return x > 0 ? x : 0.0f;
}

}  // namespace

cublasStatus_t validity(const Operation32& operation, const Layout& a, const Layout& b, const Layout& c,
                        const Layout& d) {
  const bool at = operation.transpose_a != CUBLAS_OP_N, bt = operation.transpose_b != CUBLAS_OP_N;
  const std::uint64_t m = at ? a.columns : a.rows, k = at ? a.rows : a.columns;
  const std::uint64_t n = bt ? b.rows : b.columns, k_of_b = bt ? b.columns : b.rows;
  if (k != k_of_b || d.rows != m || d.columns != n || c.rows != m || c.columns != n || m == 0 || n == 0 || k == 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const Layout* layout : {&a, &b, &c, &d}) {
    const bool by_column = layout->order == CUBLASLT_ORDER_COL;
    if (layout->leading < static_cast<std::int64_t>(by_column ? layout->rows : layout->columns))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (layout->type != CUDA_R_32F || (!by_column && layout->order != CUBLASLT_ORDER_ROW))
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (operation.compute != CUBLAS_COMPUTE_32F && operation.compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  constexpr std::array known{CUBLASLT_EPILOGUE_DEFAULT,    CUBLASLT_EPILOGUE_RELU,     CUBLASLT_EPILOGUE_BIAS,
                             CUBLASLT_EPILOGUE_RELU_BIAS,  CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
                             CUBLASLT_EPILOGUE_DRELU,      CUBLASLT_EPILOGUE_BGRADA,   CUBLASLT_EPILOGUE_BGRADB,
                             CUBLASLT_EPILOGUE_DRELU_BGRAD};
  if (std::ranges::find(known, static_cast<cublasLtEpilogue_t>(operation.epilogue)) == known.end() ||
      (operation.epilogue != CUBLASLT_EPILOGUE_DEFAULT && d.order != CUBLASLT_ORDER_COL))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // "has to be divisible by 128 and be no less than the number of rows in the output matrix"
  if (has(operation, with_aux) &&
      (operation.mask_leading < static_cast<std::int64_t>(m) || operation.mask_leading % 128 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

void multiply(const Product32& p) {
  const Operation32& o = p.operation;
  const bool tf32 = o.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool at = o.transpose_a != CUBLAS_OP_N, bt = o.transpose_b != CUBLAS_OP_N;
  const std::uint64_t m = p.d.rows, n = p.d.columns, k = at ? p.a.rows : p.a.columns;
  const auto rounded = [tf32](float x) { return tf32 ? to_tf32(x) : x; };
  std::vector<float> a(m * k);  // column-major
  for (std::uint64_t l = 0; l < k; ++l)
    for (std::uint64_t i = 0; i < m; ++i) a[l * m + i] = rounded(p.a_data[at ? p.a.at(l, i) : p.a.at(i, l)]);
  if (o.epilogue == CUBLASLT_EPILOGUE_BGRADA)
    for (std::uint64_t i = 0; i < m; ++i) {
      float sum = 0;
      for (std::uint64_t l = 0; l < k; ++l) sum += a[l * m + i];
      o.bias[i] = sum;
    }
  std::vector<float> column(m), row_sums(m);
  for (std::uint64_t j = 0; j < n; ++j) {
    std::ranges::fill(column, 0.0f);
    float sum_of_b = 0;
    for (std::uint64_t l = 0; l < k; ++l) {
      const float factor = rounded(p.b_data[bt ? p.b.at(j, l) : p.b.at(l, j)]);
      const float* const left = &a[l * m];
      sum_of_b += factor;
      for (std::uint64_t i = 0; i < m; ++i) column[i] += factor * left[i];
    }
    if (o.epilogue == CUBLASLT_EPILOGUE_BGRADB) o.bias[j] = sum_of_b;
    for (std::uint64_t i = 0; i < m; ++i) {
      float value = p.alpha * column[i];
      if (p.beta != 0) value += p.beta * p.c_data[p.c.at(i, j)];
      const std::uint64_t bit = i + j * static_cast<std::uint64_t>(o.mask_leading);
      if (has(o, bias)) value += o.bias[i];
      if (has(o, relu)) {
        if (has(o, with_aux)) {
          const auto flag = static_cast<std::uint8_t>(1u << bit % 8);
          std::uint8_t& byte = o.mask[bit / 8];
          byte = static_cast<std::uint8_t>(value > 0 ? byte | flag : byte & ~flag);
        }
        value = relu_of(value, p.relu_keeps_nan);
      }
      if (has(o, relu_gradient) && (o.mask[bit / 8] >> bit % 8 & 1) == 0) value = 0;
      p.d_data[p.d.at(i, j)] = value;
      row_sums[i] += value;
    }
  }
  if (o.epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD) std::ranges::copy(row_sums, o.bias);
}

}  // namespace trireme::cuda_emulation
