#include "device/cuda/product_plan.h"

#include <stdexcept>

#include "core/errors.h"
#include "device/gpu/workspace.h"

namespace zt::cuda {
namespace {

constexpr std::uint32_t row_alignment = 16;  // bytes: the widest that cuBLASLt's kernels ask for

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    case DType::f32: break;
  }
  return CUDA_R_32F;
}

std::uint32_t native(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu: return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_bias: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_derivative: return CUBLASLT_EPILOGUE_DGELU;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool starts_aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % row_alignment == 0; }

bool stride_aligned(std::int64_t stride, DType dtype) {
  return stride * static_cast<std::int64_t>(size_of(dtype)) % row_alignment == 0;
}

// Descriptors are made at set-up; what fails then is the memory of the host.
void require(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw RunError(std::string(call) + " failed: " + text_of(status));
}

OwnedLayout make_layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  require(cublasLtMatrixLayoutCreate(&layout, type_of(dtype), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), stride),
          "cublasLtMatrixLayoutCreate");
  return OwnedLayout(layout);
}

OwnedPreference make_preference(const ProductShape& shape) {
  cublasLtMatmulPreference_t made = nullptr;
  require(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  OwnedPreference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    require(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(gpu::product_workspace));
  // Parts of a sum may be added in fp32 from scratch memory, in a fixed order; not in the output, whose format may be
  // coarser.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // A promise that does not depend on how far addresses happen to be aligned beyond it: neither do the bits.
  const auto alignment = [&](DType dtype) {
    return shape.aligned ? row_alignment : static_cast<std::uint32_t>(size_of(dtype));
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(shape.in));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(shape.in));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(shape.out));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(shape.out));
  return preference;
}

OwnedDescriptor make_descriptor(const ProductShape& shape) {
  cublasLtMatmulDesc_t made = nullptr;
  require(cublasLtMatmulDescCreate(&made, shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  OwnedDescriptor descriptor(made);
  // Factors of another type than the descriptor's are read as what they are not, without an error.
  std::int32_t scale_type = -1;
  std::size_t written = 0;
  require(
      cublasLtMatmulDescGetAttribute(made, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale_type, sizeof scale_type, &written),
      "cublasLtMatmulDescGetAttribute");
  if (scale_type != CUDA_R_32F) throw std::logic_error("cuBLASLt does not take its factors in fp32");
  return descriptor;
}

}  // namespace

ProductShape shape_of(const MatMul& op, bool tf32, Epilogue epilogue) {
  ProductShape shape{.m = op.m, .n = op.n, .k = op.k, .lda = op.lda, .ldb = op.ldb, .ldc = op.ldc};
  shape.transpose_a = op.transpose_a;
  shape.transpose_b = op.transpose_b;
  shape.add = op.add;
  shape.in = op.a.dtype;
  shape.out = op.out.dtype;
  shape.tf32 = tf32 && op.a.dtype == DType::f32;
  shape.epilogue = epilogue;
  shape.aligned = starts_aligned(op.a.data) && starts_aligned(op.b.data) && starts_aligned(op.out.data) &&
                  stride_aligned(op.lda, op.a.dtype) && stride_aligned(op.ldb, op.b.dtype) &&
                  stride_aligned(op.ldc, op.out.dtype);
  return shape;
}

std::string text_of(const ProductShape& shape) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  };
  return matrix(shape.m, shape.k) + " x " + matrix(shape.k, shape.n) + ", " + std::string(name_of(shape.in)) + " to " +
         std::string(name_of(shape.out)) + (shape.transpose_a ? ", a transposed" : "") +
         (shape.transpose_b ? ", b transposed" : "") + ", row strides " + std::to_string(shape.lda) + ", " +
         std::to_string(shape.ldb) + ", " + std::to_string(shape.ldc);
}

std::string text_of(cublasStatus_t status) {
  return std::string(cublasLtGetStatusName(status)) + " (" + std::to_string(static_cast<int>(status)) + ": " +
         cublasLtGetStatusString(status) + ")";
}

std::unique_ptr<ProductPlan> make_plan(cublasLtHandle_t library, const ProductShape& shape, cublasStatus_t* status) {
  auto plan = std::make_unique<ProductPlan>();
  plan->descriptor = make_descriptor(shape);
  const std::int32_t a_as_it_is = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t b_as_it_is = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  set_attribute(*plan, CUBLASLT_MATMUL_DESC_TRANSA, a_as_it_is);
  set_attribute(*plan, CUBLASLT_MATMUL_DESC_TRANSB, b_as_it_is);
  set_attribute(*plan, CUBLASLT_MATMUL_DESC_EPILOGUE, native(shape.epilogue));
  if (has_gelu(shape.epilogue) || shape.epilogue == Epilogue::gelu_derivative) {
    set_attribute(*plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.ldc);
  }
  // Row-major [r, c] with a stride is column-major [c, r] with the same.
  plan->a = shape.transpose_b ? make_layout(shape.in, shape.k, shape.n, shape.ldb)
                              : make_layout(shape.in, shape.n, shape.k, shape.ldb);
  plan->b = shape.transpose_a ? make_layout(shape.in, shape.m, shape.k, shape.lda)
                              : make_layout(shape.in, shape.k, shape.m, shape.lda);
  plan->out = make_layout(shape.out, shape.n, shape.m, shape.ldc);

  const OwnedPreference preference = make_preference(shape);
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  *status = cublasLtMatmulAlgoGetHeuristic(library, plan->descriptor.get(), plan->a.get(), plan->b.get(),
                                           plan->out.get(), plan->out.get(), preference.get(), 1, &found, &count);
  if (*status == CUBLAS_STATUS_SUCCESS && count == 0) *status = CUBLAS_STATUS_NOT_SUPPORTED;
  if (*status == CUBLAS_STATUS_SUCCESS) *status = found.state;
  if (*status != CUBLAS_STATUS_SUCCESS) return nullptr;
  plan->algorithm = found.algo;
  return plan;
}

void set_attribute_bytes(const ProductPlan& plan, cublasLtMatmulDescAttributes_t attribute, const void* value,
                         std::size_t bytes) {
  require(cublasLtMatmulDescSetAttribute(plan.descriptor.get(), attribute, value, bytes),
          "cublasLtMatmulDescSetAttribute");
}

}  // namespace zt::cuda
