// One matrix product as cuBLASLt documents it, computed on host pointers: what cublaslt.cpp queues.
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace trireme::cuda_emulation {

struct Layout {
  cudaDataType_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;  // elements from a column (ORDER_ROW: a row) to the next

  [[nodiscard]] std::uint64_t at(std::uint64_t row, std::uint64_t column) const {
    const auto step = static_cast<std::uint64_t>(leading);
    return order == CUBLASLT_ORDER_COL ? row + column * step : row * step + column;
  }
  [[nodiscard]] std::uint64_t elements() const { return at(rows - 1, columns - 1) + 1; }  // from first to last
};

struct Operation32 {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float* bias = nullptr;         // read by BIAS, written by BGRAD
  std::uint8_t* mask = nullptr;  // of relu, one bit an element, columns mask_leading bits apart
  std::int64_t mask_leading = 0;
};

// d (m, n) = epilogue(alpha · op(a) (m, k) · op(b) (k, n) + beta · c (m, n)); alpha and beta by value. Sums run over k
// in order, in f32; FAST_TF32 rounds a and b to 10 bits of mantissa first. `relu_keeps_nan`: undocumented, so both are
// tried.
struct Product32 {
  Operation32 operation;
  Layout a, b, c, d;
  float alpha = 1, beta = 0;
  const float* a_data = nullptr;
  const float* b_data = nullptr;
  const float* c_data = nullptr;
  float* d_data = nullptr;
  bool relu_keeps_nan = true;
};
void multiply(const Product32& product);

// What a product of these extents may look like; CUBLAS_STATUS_SUCCESS if it does. Pointers are not looked at.
[[nodiscard]] cublasStatus_t validity(const Operation32& operation, const Layout& a, const Layout& b, const Layout& c,
                                      const Layout& d);
[[nodiscard]] inline bool has(const Operation32& operation, std::uint32_t epilogue) {
  return (operation.epilogue & epilogue) != 0;
}

}  // namespace trireme::cuda_emulation
