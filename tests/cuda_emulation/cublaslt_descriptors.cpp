// cuBLASLt's descriptors: attributes are set by number and size; what is not known here is NOT_SUPPORTED.
#include "cublaslt_descriptors.h"

#include <cstring>
#include <new>

namespace zt::emulation {
namespace {

struct Field {
  void* address;
  std::size_t bytes;
};

Field field_of(MatmulDescriptor& to, cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return {&to.compute_type, sizeof to.compute_type};
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return {&to.scale_type, sizeof to.scale_type};
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return {&to.pointer_mode, sizeof to.pointer_mode};
    case CUBLASLT_MATMUL_DESC_TRANSA: return {&to.transpose_a, sizeof to.transpose_a};
    case CUBLASLT_MATMUL_DESC_TRANSB: return {&to.transpose_b, sizeof to.transpose_b};
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return {&to.epilogue, sizeof to.epilogue};
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return {&to.bias, sizeof to.bias};
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return {&to.bias_type, sizeof to.bias_type};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return {&to.auxiliary, sizeof to.auxiliary};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return {&to.auxiliary_ld, sizeof to.auxiliary_ld};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return {&to.auxiliary_type, sizeof to.auxiliary_type};
    default: return {nullptr, 0};
  }
}

Field field_of(MatrixLayout& to, cublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return {&to.type, sizeof to.type};
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return {&to.order, sizeof to.order};
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return {&to.rows, sizeof to.rows};
    case CUBLASLT_MATRIX_LAYOUT_COLS: return {&to.columns, sizeof to.columns};
    case CUBLASLT_MATRIX_LAYOUT_LD: return {&to.ld, sizeof to.ld};
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return {&to.batch_count, sizeof to.batch_count};
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return {&to.batch_stride, sizeof to.batch_stride};
    default: return {nullptr, 0};
  }
}

Field field_of(Preference& to, cublasLtMatmulPreferenceAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return {&to.workspace, sizeof to.workspace};
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return {&to.reduction_schemes, sizeof to.reduction_schemes};
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return {&to.alignments[0], sizeof to.alignments[0]};
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return {&to.alignments[1], sizeof to.alignments[1]};
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return {&to.alignments[2], sizeof to.alignments[2]};
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return {&to.alignments[3], sizeof to.alignments[3]};
    default: return {nullptr, 0};
  }
}

template <typename T, typename Opaque, typename Attribute>
cublasStatus_t set(Opaque* opaque, Attribute attribute, const void* value, std::size_t bytes) {
  if (opaque == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field field = field_of(contents<T>(opaque), attribute);
  if (field.address == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (field.bytes != bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(field.address, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque, typename T>
cublasStatus_t create(Opaque** opaque, const T& value) {
  *opaque = new Opaque();
  new (*opaque) T(value);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  MatmulDescriptor value;
  value.compute_type = compute;
  value.scale_type = scale;
  return create(descriptor, value);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) { return destroy(descriptor); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return set<MatmulDescriptor>(descriptor, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t descriptor, cublasLtMatmulDescAttributes_t attribute,
                                              void* value, std::size_t bytes, std::size_t* written) {
  if (descriptor == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Field field = field_of(contents<MatmulDescriptor>(descriptor), attribute);
  if (field.address == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (bytes < field.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, field.address, field.bytes);
  if (written != nullptr) *written = field.bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld) {
  MatrixLayout value;
  value.type = static_cast<std::uint32_t>(type);
  value.rows = rows;
  value.columns = columns;
  value.ld = ld;
  return create(layout, value);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  return set<MatrixLayout>(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference());
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  return set<Preference>(preference, attribute, value, bytes);
}

}  // extern "C"
