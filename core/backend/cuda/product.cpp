// Plans by shape: descriptors, layouts and algorithm of one product, made at its first call.
#include "core/backend/cuda/product.h"

#include <cublasLt.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>

#include "core/backend/cuda/columns.h"
#include "core/base/error.h"
#include "core/device/cuda/shared.h"

namespace trireme::backend::cuda {
namespace {

void check(cublasStatus_t status, const char* what, const Product& p) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ExitCode::io : ExitCode::internal,
       "cuda: {} of ({}, {}) · ({}, {}){}{}: {} ({})", what, p.m, p.k, p.k, p.n, p.bias != nullptr ? " + bias" : "",
       p.relu ? ", relu" : "", cublasLtGetStatusString(status), cublasLtGetStatusName(status));
}

cublasLtHandle_t handle() {
  static const cublasLtHandle_t made = [] {  // for the life of the process, like the device
    cublasLtHandle_t h = nullptr;
    if (const cublasStatus_t status = cublasLtCreate(&h); status != CUBLAS_STATUS_SUCCESS)
      fail(ExitCode::internal, "cuda: cublasLtCreate: {} ({})", cublasLtGetStatusString(status),
           cublasLtGetStatusName(status));
    return h;
  }();
  return made;
}

// Memory of arenas, feeds and parameters begins on 64 bytes; the library assumes 256 unless told.
constexpr std::uint32_t known_alignment = 64, least_alignment = 4;

// cuBLASLt is column-major, so it is asked for cᵀ (n, m) = bᵀ · aᵀ; bias runs along n, its rows.
class Plan {
 public:
  explicit Plan(const Product& p) {
    check(cublasLtMatmulDescCreate(&operation_, p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate", p);
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p);
    left_ = layout(p.b_transposed ? p.k : p.n, p.b_transposed ? p.n : p.k, p);
    right_ = layout(p.a_transposed ? p.m : p.k, p.a_transposed ? p.k : p.m, p);
    result_ = layout(p.n, p.m, p);
    set_epilogue(p, p.relu);
    choose(p);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    cublasLtMatrixLayoutDestroy(left_);
    cublasLtMatrixLayoutDestroy(right_);
    cublasLtMatrixLayoutDestroy(result_);
    cublasLtMatmulDescDestroy(operation_);
  }

  void run(const Product& p, float alpha, device::Stream& stream) {
    const device::cuda::StreamState& state = device::cuda::state_of(stream);
    if (p.bias != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, p);
    const float beta = 0;
    check(cublasLtMatmul(handle(), operation_, &alpha, p.b, left_, p.a, right_, &beta, p.c, result_, p.c, result_,
                         &algorithm_, state.workspace, workspace_bytes_, static_cast<cudaStream_t>(stream.native())),
          "cublasLtMatmul", p);
    if (p.relu && own_relu_) apply_relu(p.c, p.c, static_cast<std::size_t>(p.m * p.n), stream);
  }

  // The library does not say whether its relu keeps NaN, and one that makes it 0 would hide a diverging model: tried with a NaN factor,
  // and done by a kernel of ours where NaN is lost.
  void try_relu(const Product& p, device::Stream& stream) {
    run(p, std::numeric_limits<float>::quiet_NaN(), stream);
    float first = 0;
    stream.copy(std::as_writable_bytes(std::span(&first, 1)), std::as_bytes(std::span(p.c, 1)));
    stream.synchronize();
    if (std::isnan(first)) return;
    own_relu_ = true;
    set_epilogue(p, false);
    choose(p);
  }

 private:
  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value, const Product& p) {
    check(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute",
          p);
  }
  // `rows` are contiguous.
  static cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t columns, const Product& p) {
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate", p);
    return made;
  }
  void set_epilogue(const Product& p, bool with_relu) {
    const bool bias = p.bias != nullptr;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE,
        with_relu ? (bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU)
                  : (bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT),
        p);
    if (bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias, p);
  }
  // The first of the library's proposals; partial sums, if any, are added in the workspace in one order.
  void choose(const Product& p) {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate", p);
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, void (*)(cublasLtMatmulPreference_t)> preference(
        made, [](cublasLtMatmulPreference_t one) { cublasLtMatmulPreferenceDestroy(one); });
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute", p);
    };
    const std::uint64_t most = device::cuda::state_of(device::cuda::shared().device->compute_stream()).workspace_bytes;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, most);
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    const std::uint32_t alignment = aligned(p) ? known_alignment : least_alignment;
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(attribute, alignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    check(
        cublasLtMatmulAlgoGetHeuristic(handle(), operation_, left_, right_, result_, result_, made, 1, &found, &count),
        "cublasLtMatmulAlgoGetHeuristic", p);
    check(count > 0 ? found.state : CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", p);
    algorithm_ = found.algo;
    workspace_bytes_ = found.workspaceSize;
  }

 public:
  static bool aligned(const Product& p) {
    for (const float* pointer : {p.a, p.b, static_cast<const float*>(p.c), p.bias})
      if (reinterpret_cast<std::uintptr_t>(pointer) % known_alignment != 0) return false;
    return true;
  }

 private:
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  std::size_t workspace_bytes_ = 0;
  bool own_relu_ = false;
};

using Key = std::array<std::int64_t, 4>;
struct Hash {
  std::size_t operator()(const Key& key) const noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::int64_t part : key)
      hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    return hash;
  }
};

Plan& plan_of(const Product& p, device::Stream& stream) {
  static auto& plans = *new std::unordered_map<Key, std::unique_ptr<Plan>, Hash>;  // for the life of the process
  constexpr std::size_t most = 1024;
  const std::int64_t kind = (p.a_transposed ? 1 : 0) | (p.b_transposed ? 2 : 0) | (p.bias != nullptr ? 4 : 0) |
                            (p.relu ? 8 : 0) | (p.tf32 ? 16 : 0) | (Plan::aligned(p) ? 32 : 0);
  const Key key{p.m, p.n, p.k, kind};
  if (const auto found = plans.find(key); found != plans.end()) return *found->second;
  if (plans.size() == most) plans.clear();  // a model whose shapes never settle must not grow for ever
  auto made = std::make_unique<Plan>(p);
  if (p.relu) made->try_relu(p, stream);
  return *plans.emplace(key, std::move(made)).first->second;
}

}  // namespace

void multiply(const Product& p, device::Stream& stream) {
  if (p.m == 0 || p.n == 0) return;
  plan_of(p, stream).run(p, 1.0f, stream);
}

}  // namespace trireme::backend::cuda
