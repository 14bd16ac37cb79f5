// What the opaque descriptors of cublasLt.h hold here, and their attributes.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace zt::emulation {

struct MatmulDescriptor {
  std::int32_t compute_type = CUBLAS_COMPUTE_32F;
  std::int32_t scale_type = CUDA_R_32F;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* auxiliary = nullptr;
  std::int64_t auxiliary_ld = 0;
  std::int32_t bias_type = -1;       // -1: as D
  std::int32_t auxiliary_type = -1;  // -1: as D
};

struct MatrixLayout {
  std::uint32_t type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch_count = 1;
  std::int64_t batch_stride = 0;
};

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;  // every algorithm here adds in one go
  std::uint32_t alignments[4] = {256, 256, 256, 256};                // what the caller promises of A, B, C, D
};

// What a heuristic's answer carries to the product.
struct Algorithm {
  std::uint64_t magic = 0;
  std::uint64_t workspace = 0;
  std::uint32_t alignments[4] = {};
  static constexpr std::uint64_t valid = 0x7a65726f74726131;
};

template <typename T, typename Opaque>
T& contents(Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  return *reinterpret_cast<T*>(opaque);
}
template <typename T, typename Opaque>
const T& contents(const Opaque* opaque) {
  static_assert(sizeof(T) <= sizeof(Opaque));
  return *reinterpret_cast<const T*>(opaque);
}

struct Product {
  MatmulDescriptor descriptor;
  MatrixLayout a, b, c, d;
};

// CUBLAS_STATUS_SUCCESS, NOT_SUPPORTED (a combination that cuBLASLt has no kernel for, or that is not emulated) or
// INVALID_VALUE (sizes that do not go together).
cublasStatus_t check(const Product& product);

std::size_t size_of_type(std::int32_t type);  // 0: not supported

struct Operands {
  float alpha, beta;
  const void* a;
  const void* b;
  const void* c;
  void* d;
};

// D = epilogue(alpha op(A) op(B) + beta C). All that is checked has been.
void multiply(const Product& product, const Operands& operands);

}  // namespace zt::emulation
