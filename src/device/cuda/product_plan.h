// How cuBLASLt computes a product of one shape: its descriptors and the algorithm it chose.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "core/dtype.h"
#include "device/operations.h"

namespace zt::cuda {

// What cuBLASLt does to a product before it stores it.
enum class Epilogue : std::uint8_t {
  none,
  bias,
  gelu,             // stores the product beside its GELU
  gelu_bias,        // the same with a bias added first
  gelu_derivative,  // multiplies the product by GELU's derivative at what a forward pass stored beside
};
constexpr bool has_bias(Epilogue epilogue) { return epilogue == Epilogue::bias || epilogue == Epilogue::gelu_bias; }
constexpr bool has_gelu(Epilogue epilogue) { return epilogue == Epilogue::gelu || epilogue == Epilogue::gelu_bias; }

// All that an algorithm, and so the bits of the result, depends on.
struct ProductShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;
  bool aligned = false;  // rows of all matrices start at multiples of 16 bytes
  DType in = DType::f32, out = DType::f32;
  bool tf32 = false;
  Epilogue epilogue = Epilogue::none;

  auto operator<=>(const ProductShape&) const = default;
};

ProductShape shape_of(const MatMul& op, bool tf32, Epilogue epilogue);

// "[64, 32] x [32, 16], bf16 to fp32": for messages.
std::string text_of(const ProductShape& shape);

// "CUBLAS_STATUS_NOT_SUPPORTED (15: ...)".
std::string text_of(cublasStatus_t status);

// cuBLASLt's handles, destroyed with their owners.
template <typename Handle, auto destroy>
struct Destroy {
  void operator()(Handle handle) const { static_cast<void>(destroy(handle)); }
};
template <typename Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle, destroy>>;
using OwnedDescriptor = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using OwnedLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using OwnedPreference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// cuBLASLt's matrices are column-major: it sees out's transpose, op(b)^T op(a)^T, so its A is our b and its D our out,
// [n, m], and its bias runs along n.
struct ProductPlan {
  OwnedDescriptor descriptor;
  OwnedLayout a, b, out;
  cublasLtMatmulAlgo_t algorithm = {};
};

// Null, with the status, if cuBLASLt has no algorithm for this shape. Deterministic ones alone are asked for, with
// gpu::product_workspace bytes of scratch.
std::unique_ptr<ProductPlan> make_plan(cublasLtHandle_t library, const ProductShape& shape, cublasStatus_t* status);

// Sets an attribute of a plan's descriptor. Errors: RunError.
template <typename T>
void set_attribute(const ProductPlan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value);
void set_attribute_bytes(const ProductPlan& plan, cublasLtMatmulDescAttributes_t attribute, const void* value,
                         std::size_t bytes);
template <typename T>
void set_attribute(const ProductPlan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  set_attribute_bytes(plan, attribute, &value, sizeof value);
}

}  // namespace zt::cuda
