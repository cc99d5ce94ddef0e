// cuBLASLt's calls: descriptors, one algorithm for each product, and the product as an operation of the stream. The workspace is
// scribbled on, so that two streams cannot share one unseen.
#include "tests/cuda_emulation/cublaslt.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "tests/cuda_emulation/memory.h"
#include "tests/cuda_emulation/schedule.h"

using namespace trireme::cuda_emulation;

namespace {

constexpr std::size_t workspace_bytes = 4096;  // that an algorithm wants, where the preference allows it
constexpr std::uint64_t magic = 0x7472656d65u;

struct Preference {
  std::uint64_t most_workspace = 0;
  std::array<std::uint32_t, 4> alignment{256, 256, 256, 256};  // of a, b, c, d
};

// What an algorithm was chosen for; lies in cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint64_t known = 0, problem = 0;
  std::uint32_t workspace = 0;
  std::array<std::uint16_t, 4> alignment{};
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

std::uint64_t hash_of(const Operation32& o, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  std::uint64_t hash = 1;
  const auto add = [&](std::uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 31); };
  for (const auto part : {o.compute + 0, o.transpose_a, o.transpose_b}) add(static_cast<std::uint64_t>(part));
  add(o.epilogue);
  for (const Layout* layout : {&a, &b, &c, &d}) {
    add(layout->rows), add(layout->columns), add(static_cast<std::uint64_t>(layout->leading));
    add(static_cast<std::uint64_t>(layout->order));
  }
  return hash;
}

// Handles are pointers to these.
template <class Own, class Handle>
Own& own(Handle handle) {
  return *reinterpret_cast<Own*>(handle);
}
template <class Handle, class Own>
cublasStatus_t make(Handle* handle, const Own& value) {
  *handle = reinterpret_cast<Handle>(std::make_unique<Own>(value).release());
  return CUBLAS_STATUS_SUCCESS;
}
template <class Own, class Handle>
cublasStatus_t destroy(Handle handle) {
  const std::unique_ptr<Own> owned(&own<Own>(handle));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t take(T& into, const void* value, std::size_t bytes) {
  if (bytes != sizeof into) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&into, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
// Only this value is known.
template <class T>
cublasStatus_t expect(T expected, const void* value, std::size_t bytes) {
  T given{};
  const cublasStatus_t status = take(given, value, bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return given == expected ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

constexpr std::array<const char*, 4> letters{"A", "B", "C", "D"};

// Reports what of the memory is not there.
bool check_memory(const Product32& p, const void* workspace, std::size_t bytes) {
  const auto check = [](const void* memory, std::uint64_t elements, const char* what) {
    return check_range(memory, elements * sizeof(float), what);
  };
  const Operation32& o = p.operation;
  bool good = check(p.a_data, p.a.elements(), "cublasLtMatmul A") &&
              check(p.b_data, p.b.elements(), "cublasLtMatmul B") &&
              check(p.d_data, p.d.elements(), "cublasLtMatmul D");
  if (p.beta != 0) good = good && check(p.c_data, p.c.elements(), "cublasLtMatmul C");
  if (o.bias != nullptr && o.epilogue != CUBLASLT_EPILOGUE_DEFAULT && o.epilogue != CUBLASLT_EPILOGUE_RELU) {
    const bool of_columns = o.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    good = good && check(o.bias, of_columns ? p.d.columns : p.d.rows, "cublasLtMatmul bias");
  }
  if (has(o, 128)) {
    const auto bits = static_cast<std::uint64_t>(o.mask_leading) * p.d.columns;
    good = good && check_range(o.mask, bits / 8, "cublasLtMatmul mask of relu");
  }
  if (bytes != 0) good = good && check_range(workspace, bytes, "cublasLtMatmul workspace");
  const auto overlap = [&](const float* data, const Layout& layout) {
    return data < p.d_data + p.d.elements() && p.d_data < data + layout.elements();
  };
  if (good && (overlap(p.a_data, p.a) || overlap(p.b_data, p.b))) {
    report("cublasLtMatmul: the result lies on an operand");
    return false;
  }
  return good;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle, std::uint64_t{magic}); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy<std::uint64_t>(handle); }
size_t cublasLtGetVersion() { return CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH; }
const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    default: return "a status that the emulation does not give";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  return make(layout, Layout{type, CUBLASLT_ORDER_COL, rows, columns, leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy<Layout>(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  auto& l = own<Layout>(layout);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return take(l.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD: return take(l.leading, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return take(l.rows, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return take(l.columns, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* operation, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make(operation, Operation32{.compute = compute});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) { return destroy<Operation32>(operation); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  auto& o = own<Operation32>(operation);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(o.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(o.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(o.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(o.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(o.mask, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(o.mask_leading, value, bytes);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return expect(std::int32_t{CUBLASLT_POINTER_MODE_HOST}, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return expect(std::int32_t{CUDA_R_32F}, value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(preference, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  auto& p = own<Preference>(preference);
  std::uint32_t ignored = 0;  // one algorithm, which has no split sums
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(p.most_workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(ignored, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(p.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(p.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(p.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(p.alignment[3], value, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  *found = 0;
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  const auto& o = own<Operation32>(operation);
  const auto &la = own<Layout>(a), &lb = own<Layout>(b), &lc = own<Layout>(c), &ld = own<Layout>(d);
  if (const cublasStatus_t status = validity(o, la, lb, lc, ld); status != CUBLAS_STATUS_SUCCESS) return status;
  const auto& p = own<Preference>(preference);
  Algorithm algorithm{magic, hash_of(o, la, lb, lc, ld), 0, {}};
  algorithm.workspace = p.most_workspace >= workspace_bytes ? std::uint32_t{workspace_bytes} : 0;
  for (std::size_t i = 0; i < p.alignment.size(); ++i)
    algorithm.alignment[i] = static_cast<std::uint16_t>(std::min(p.alignment[i], 16u));  // 16-byte loads at the most
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t bytes, cudaStream_t stream) {
  const Locked locked;
  if (handle == nullptr || own<std::uint64_t>(handle) != magic) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!check_stream(stream, "cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
  Product32 p{.operation = own<Operation32>(operation),
              .a = own<Layout>(layout_a),
              .b = own<Layout>(layout_b),
              .c = own<Layout>(layout_c),
              .d = own<Layout>(layout_d),
              .a_data = static_cast<const float*>(a),
              .b_data = static_cast<const float*>(b),
              .c_data = static_cast<const float*>(c),
              .d_data = static_cast<float*>(d),
              .relu_keeps_nan = seed() % 2 == 0};
  std::memcpy(&p.alpha, alpha, sizeof p.alpha);
  std::memcpy(&p.beta, beta, sizeof p.beta);
  if (const cublasStatus_t status = validity(p.operation, p.a, p.b, p.c, p.d); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (algo != nullptr) {
    Algorithm algorithm;
    std::memcpy(static_cast<void*>(&algorithm), algo->data, sizeof algorithm);
    if (algorithm.known != magic || algorithm.problem != hash_of(p.operation, p.a, p.b, p.c, p.d)) {
      report("cublasLtMatmul: the algorithm was not chosen for this product");
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (bytes < algorithm.workspace) return CUBLAS_STATUS_INVALID_VALUE;
    const std::array<const void*, 4> pointers{a, b, c, d};
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      if (reinterpret_cast<std::uintptr_t>(pointers[i]) % algorithm.alignment[i] == 0) continue;
      report(std::string("cublasLtMatmul: ") + letters[i] + " is not aligned as the algorithm was told");
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (!check_memory(p, workspace, bytes)) return CUBLAS_STATUS_EXECUTION_FAILED;
  enqueue(stream, {"cublasLtMatmul", [p, workspace, bytes] {
                     if (bytes != 0) std::memset(workspace, 0xFF, bytes);
                     multiply(p);
                   }});
  return status() == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
