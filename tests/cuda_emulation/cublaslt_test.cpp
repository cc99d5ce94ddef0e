// cuBLASLt's emulation against sums in f64: transposes, leading dimensions, epilogues; what it refuses; what it does to
// a workspace. Whole numbers, so that f32 and TF32 are exact where nothing else is said.
#include "tests/cuda_emulation/cublaslt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/cuda_emulation/sample_kernels.h"
#include "tests/cuda_emulation/seeds.h"

namespace trireme::cuda_emulation {
namespace {

// Column-major, `leading` apart.
struct Matrix {
  Matrix(std::uint64_t height, std::uint64_t width, std::uint64_t apart, int factor)
      : rows(height), columns(width), leading(apart), host(apart * width), device(host.size()) {
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(static_cast<int>(i) * factor % 13 - 6);
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, columns, static_cast<std::int64_t>(leading));
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { cublasLtMatrixLayoutDestroy(layout); }

  void send(cudaStream_t stream) const {
    cudaMemcpyAsync(device.data, host.data(), device.bytes, cudaMemcpyDefault, stream);
  }
  void fetch(cudaStream_t stream) {
    cudaMemcpyAsync(host.data(), device.data, device.bytes, cudaMemcpyDefault, stream);
  }
  [[nodiscard]] double at(std::uint64_t row, std::uint64_t column) const {
    return double{host[row + column * leading]};
  }

  std::uint64_t rows, columns, leading;
  std::vector<float> host;
  OnDevice device;
  cublasLtMatrixLayout_t layout = nullptr;
};

constexpr std::uint64_t m = 7, n = 5, k = 11;

struct Shape {
  bool a_transposed = false, b_transposed = false;
  std::uint64_t apart = 0;  // more than the rows
};

struct Case {
  explicit Case(Shape of, cublasComputeType_t compute = CUBLAS_COMPUTE_32F)
      : shape(of),
        a(shape.a_transposed ? k : m, shape.a_transposed ? m : k, (shape.a_transposed ? k : m) + shape.apart, 5),
        b(shape.b_transposed ? n : k, shape.b_transposed ? k : n, (shape.b_transposed ? n : k) + shape.apart, 7),
        d(m, n, m + shape.apart, 3),
        bias(m, 1, m, 11) {
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;
  ~Case() {
    cublasLtMatmulDescDestroy(operation);
    cublasLtDestroy(handle);
  }
  template <class Value>
  cublasStatus_t set(cublasLtMatmulDescAttributes_t attribute, Value value) {
    return cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
  cublasStatus_t epilogue(cublasLtEpilogue_t which) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.device.data);
    return set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(which));
  }
  cublasStatus_t run(float alpha = 1, float beta = 0, void* workspace = nullptr, std::size_t bytes = 0) {
    for (const Matrix* matrix : {&a, &b, &d, &bias}) matrix->send(stream.stream);
    const cublasStatus_t status =
        cublasLtMatmul(handle, operation, &alpha, a.device.data, a.layout, b.device.data, b.layout, &beta,
                       d.device.data, d.layout, d.device.data, d.layout, nullptr, workspace, bytes, stream.stream);
    d.fetch(stream.stream);
    return status;
  }
  // op(a) · op(b) at one place.
  [[nodiscard]] double product(std::uint64_t row, std::uint64_t column) const {
    double sum = 0;
    for (std::uint64_t l = 0; l < k; ++l)
      sum +=
          (shape.a_transposed ? a.at(l, row) : a.at(row, l)) * (shape.b_transposed ? b.at(column, l) : b.at(l, column));
    return sum;
  }
  template <class Expected>
  void expect(Expected expected) const {
    for (std::uint64_t column = 0; column < n; ++column)
      for (std::uint64_t row = 0; row < m; ++row)
        ASSERT_EQ(d.at(row, column), expected(row, column)) << row << ", " << column;
  }

  Shape shape;
  SampleStream stream;
  Matrix a, b, d, bias;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
};

class CublasLt : public testing::Test {
 protected:
  CublasLt() { begin(2, Mode::random); }
  ~CublasLt() override { static_cast<void>(take_finding()); }
};

TEST_F(CublasLt, ProductsOfAllTransposesAndLeadingDimensions) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      for (const std::uint64_t apart : {0u, 3u}) {
        Case c({a_transposed, b_transposed, apart});
        const std::vector<float> before = c.d.host;
        ASSERT_EQ(c.run(2, 3), CUBLAS_STATUS_SUCCESS);
        c.expect([&](std::uint64_t row, std::uint64_t column) {
          return 2 * c.product(row, column) + 3 * double{before[row + column * c.d.leading]};
        });
        for (std::uint64_t column = 0; column < n; ++column)  // what lies between columns stays
          for (std::uint64_t row = m; row < c.d.leading; ++row)
            EXPECT_EQ(c.d.host[row + column * c.d.leading], before[row + column * c.d.leading]);
      }
    }
  }
  EXPECT_EQ(take_finding(), "");
}

TEST_F(CublasLt, WithoutBetaTheOldResultDoesNotMatter) {
  Case c({});
  c.d.host.assign(c.d.host.size(), std::numeric_limits<float>::quiet_NaN());
  ASSERT_EQ(c.run(), CUBLAS_STATUS_SUCCESS);
  c.expect([&](std::uint64_t row, std::uint64_t column) { return c.product(row, column); });
}

TEST_F(CublasLt, BiasRunsAlongRowsAndReluCutsBehindIt) {
  for (const bool relu : {false, true}) {
    Case c({});
    ASSERT_EQ(c.epilogue(relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(c.run(), CUBLAS_STATUS_SUCCESS);
    c.expect([&](std::uint64_t row, std::uint64_t column) {
      const double value = c.product(row, column) + c.bias.at(row, 0);
      return relu && value < 0 ? 0.0 : value;
    });
  }
}

// The documentation does not say which: programs must stand both.
TEST_F(CublasLt, ReluKeepsOrLosesNanBySeed) {
  for (const std::uint64_t seed : {1u, 2u}) {
    begin(seed, Mode::random);
    Case c({});
    c.epilogue(CUBLASLT_EPILOGUE_RELU);
    c.a.host.assign(c.a.host.size(), std::numeric_limits<float>::quiet_NaN());
    ASSERT_EQ(c.run(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(std::isnan(c.d.host[0]), seed % 2 == 0);
  }
}

TEST_F(CublasLt, GradientsOfBias) {
  Case of_a({}), of_b({});
  of_a.epilogue(CUBLASLT_EPILOGUE_BGRADA);
  of_b.epilogue(CUBLASLT_EPILOGUE_BGRADB);
  for (Case* c : {&of_a, &of_b}) {
    ASSERT_EQ(c->run(), CUBLAS_STATUS_SUCCESS);
    c->bias.fetch(c->stream.stream);
    for (std::uint64_t i = 0; i < (c == &of_a ? m : n); ++i) {
      double sum = 0;
      for (std::uint64_t l = 0; l < k; ++l) sum += c == &of_a ? c->a.at(i, l) : c->b.at(l, i);
      EXPECT_EQ(c->bias.at(i, 0), sum);
    }
  }
}

TEST_F(CublasLt, MaskOfReluGoesFromForwardToBackward) {
  Case forward({}), backward({});
  SampleMemory<std::uint8_t, false> mask(128 / 8 * n);
  for (Case* c : {&forward, &backward}) {
    c->set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask.data);
    c->set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{128});
  }
  forward.epilogue(CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
  backward.epilogue(CUBLASLT_EPILOGUE_DRELU_BGRAD);
  ASSERT_EQ(forward.run(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(backward.run(), CUBLAS_STATUS_SUCCESS);
  backward.bias.fetch(backward.stream.stream);
  std::vector<double> sums(m);
  backward.expect([&](std::uint64_t row, std::uint64_t column) {
    const double gradient = forward.d.at(row, column) > 0 ? backward.product(row, column) : 0;
    sums[row] += gradient;
    return gradient;
  });
  for (std::uint64_t row = 0; row < m; ++row) EXPECT_EQ(backward.bias.at(row, 0), sums[row]);
  backward.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{96});  // must be a multiple of 128
  EXPECT_EQ(backward.run(), CUBLAS_STATUS_INVALID_VALUE);
}

// 1 + 2⁻¹² has one bit more than TF32 keeps; f32 keeps it.
TEST_F(CublasLt, Tf32RoundsItsOperands) {
  const float fine = 1 + std::ldexp(1.0f, -12);
  for (const auto compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32}) {
    Case c({}, compute);
    c.a.host.assign(c.a.host.size(), fine);
    c.b.host.assign(c.b.host.size(), 1.0f);
    ASSERT_EQ(c.run(), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(c.d.host[0], compute == CUBLAS_COMPUTE_32F ? static_cast<float>(k) * fine : static_cast<float>(k));
  }
}

TEST_F(CublasLt, WrongLeadingDimensionsAreCaught) {
  Case small({});
  const std::int64_t less = m - 1;
  cublasLtMatrixLayoutSetAttribute(small.d.layout, CUBLASLT_MATRIX_LAYOUT_LD, &less, sizeof less);
  EXPECT_EQ(small.run(), CUBLAS_STATUS_INVALID_VALUE);
  Case large({});
  const std::int64_t more = m + 1;
  cublasLtMatrixLayoutSetAttribute(large.a.layout, CUBLASLT_MATRIX_LAYOUT_LD, &more, sizeof more);
  EXPECT_EQ(large.run(), CUBLAS_STATUS_EXECUTION_FAILED);
  EXPECT_NE(take_finding().find("cublasLtMatmul A"), std::string::npos);
}

TEST_F(CublasLt, ExtentsThatDoNotFitAreRefused) {
  Case c({});
  const std::uint64_t other = k + 1;
  cublasLtMatrixLayoutSetAttribute(c.b.layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &other, sizeof other);
  EXPECT_EQ(c.run(), CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(CublasLt, WorkspaceIsScribbledOn) {
  Case c({});
  OnDevice workspace(1024);
  fill(c.stream.stream, workspace.data, 1, 1024);
  ASSERT_EQ(c.run(1, 0, workspace.data, workspace.bytes), CUBLAS_STATUS_SUCCESS);
  std::vector<float> host(1024);
  cudaMemcpyAsync(host.data(), workspace.data, workspace.bytes, cudaMemcpyDefault, c.stream.stream);
  EXPECT_TRUE(std::isnan(host.front()) && std::isnan(host.back()));
}

TEST_F(CublasLt, AnAlgorithmIsForItsProductAndItsWorkspace) {
  Case c({}), transposed({true, false, 0});
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulPreferenceCreate(&preference);
  const std::uint64_t most = 1 << 20;
  cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  ASSERT_EQ(cublasLtMatmulAlgoGetHeuristic(c.handle, c.operation, c.a.layout, c.b.layout, c.d.layout, c.d.layout,
                                           preference, 1, &found, &count),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulPreferenceDestroy(preference);
  ASSERT_EQ(count, 1);
  EXPECT_GT(found.workspaceSize, 0u);
  EXPECT_LE(found.workspaceSize, most);
  OnDevice workspace(found.workspaceSize / sizeof(float));
  const float one = 1, zero = 0;
  const auto run = [&](Case& with, std::size_t bytes) {
    return cublasLtMatmul(with.handle, with.operation, &one, with.a.device.data, with.a.layout, with.b.device.data,
                          with.b.layout, &zero, with.d.device.data, with.d.layout, with.d.device.data, with.d.layout,
                          &found.algo, workspace.data, bytes, with.stream.stream);
  };
  EXPECT_EQ(run(c, workspace.bytes), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(c, found.workspaceSize - 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(take_finding(), "");
  EXPECT_EQ(run(transposed, workspace.bytes), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_NE(take_finding().find("not chosen for this product"), std::string::npos);
}

}  // namespace
}  // namespace trireme::cuda_emulation
