// cuBLASLt's handle, heuristics and product: what it would refuse is refused before anything is queued.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "cublaslt_descriptors.h"
#include "device_memory.h"
#include "emulation_state.h"
#include "runtime_tables.h"
#include "stream.h"

namespace zt::emulation {
namespace {

constexpr std::uint64_t wanted_workspace = 1 << 20;

Product product_of(cublasLtMatmulDesc_t descriptor, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                   cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  return {contents<MatmulDescriptor>(descriptor), contents<MatrixLayout>(a), contents<MatrixLayout>(b),
          contents<MatrixLayout>(c), contents<MatrixLayout>(d)};
}

bool is_aligned(const void* pointer, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// That all the bytes of a matrix are in one allocation of the device.
bool fits(const char* name, const void* memory, std::int64_t elements, std::size_t element_bytes) {
  const auto bytes = static_cast<std::size_t>(elements) * element_bytes;
  if (bytes_behind(memory) >= bytes) return true;
  report("cublasLtMatmul: " + std::string(name) + " has " + std::to_string(bytes) + " bytes, but where it points to " +
         std::to_string(bytes_behind(memory)) + " bytes of device memory are left");
  return false;
}

bool fits(const char* name, const void* memory, const MatrixLayout& layout) {
  const auto rows = static_cast<std::int64_t>(layout.rows);
  const auto columns = static_cast<std::int64_t>(layout.columns);
  const std::int64_t elements = (layout.batch_count - 1) * layout.batch_stride + (columns - 1) * layout.ld + rows;
  return fits(name, memory, elements, size_of_type(static_cast<std::int32_t>(layout.type)));
}

bool all_fit(const Product& product, const Operands& operands) {
  const MatmulDescriptor& how = product.descriptor;
  const std::size_t element = size_of_type(static_cast<std::int32_t>(product.d.type));
  const auto m = static_cast<std::int64_t>(product.d.rows);
  const auto n = static_cast<std::int64_t>(product.d.columns);
  bool result = fits("A", operands.a, product.a) && fits("B", operands.b, product.b) &&
                fits("D", operands.d, product.d) && (operands.beta == 0 || fits("C", operands.c, product.c));
  if ((how.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    result = result && fits("the bias", how.bias, m, how.bias_type >= 0 ? size_of_type(how.bias_type) : element);
  }
  if ((how.epilogue & 128) != 0) {
    result = result && fits("the epilogue's auxiliary", how.auxiliary, (n - 1) * how.auxiliary_ld + m, element);
  }
  return result;
}

}  // namespace
}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (unusable() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (is_to_fail(Call::allocation, current_device())) return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(current_device()));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_EXECUTION_FAILED";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found) {
  if (handle == nullptr || preference == nullptr || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  *found = 0;
  const Product product = product_of(descriptor, a, b, c, d);
  const cublasStatus_t status = check(product);
  if (!settings().epilogues && product.descriptor.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto& wishes = contents<Preference>(preference);
  results[0] = {};
  Algorithm& algorithm = contents<Algorithm>(&results[0].algo);
  algorithm.magic = Algorithm::valid;
  algorithm.workspace = std::min(wishes.workspace, wanted_workspace);
  std::memcpy(algorithm.alignments, wishes.alignments, sizeof algorithm.alignments);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  if (handle == nullptr || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Product product = product_of(descriptor, a_layout, b_layout, c_layout, d_layout);
  if (const auto status = check(product); status != CUBLAS_STATUS_SUCCESS) return status;
  const Operands operands = {*static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, c, d};
  std::uint64_t needed = 0;
  if (algorithm != nullptr) {
    const auto& chosen = contents<Algorithm>(algorithm);
    if (chosen.magic != Algorithm::valid) return CUBLAS_STATUS_INVALID_VALUE;
    needed = chosen.workspace;
    const std::array<const void*, 4> pointers = {a, b, operands.beta == 0 ? nullptr : c, d};
    for (std::size_t i = 0; i < pointers.size(); ++i) {
      if (!is_aligned(pointers[i], chosen.alignments[i])) return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (workspace_bytes < needed || !is_aligned(workspace, 256)) return CUBLAS_STATUS_INVALID_VALUE;
  if (needed > 0 && !fits("the workspace", workspace, static_cast<std::int64_t>(needed), 1)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!all_fit(product, operands)) return CUBLAS_STATUS_INVALID_VALUE;
  if (is_to_fail(Call::launch, current_device())) return CUBLAS_STATUS_EXECUTION_FAILED;
  const cudaError_t queued = queue(stream, [product, operands, workspace, needed] {
    if (needed > 0) std::memset(workspace, 0xff, needed);  // whatever else lies there is lost
    multiply(product, operands);
  });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
