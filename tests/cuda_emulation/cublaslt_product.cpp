// The product itself, column by column of D, in fp32 sums.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <vector>

#include "cublaslt_descriptors.h"

namespace zt::emulation {
namespace {

constexpr std::uint32_t with_auxiliary = 128;

float read(const void* memory, std::int32_t type, std::int64_t at) {
  switch (type) {
    case CUDA_R_16F: return __half2float(static_cast<const __half*>(memory)[at]);
    case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(memory)[at]);
    default: return static_cast<const float*>(memory)[at];
  }
}

void write(void* memory, std::int32_t type, std::int64_t at, float value) {
  switch (type) {
    case CUDA_R_16F: static_cast<__half*>(memory)[at] = __float2half_rn(value); break;
    case CUDA_R_16BF: static_cast<__nv_bfloat16*>(memory)[at] = __float2bfloat16_rn(value); break;
    default: static_cast<float*>(memory)[at] = value;
  }
}

// TF32 keeps ten bits of the fraction; to nearest, ties away from zero.
float to_tf32(float value) { return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000U) & ~0x1fffU); }

// op(M) as [rows, columns], column after column.
std::vector<float> load(const void* memory, const MatrixLayout& layout, std::int32_t transpose, std::int64_t offset,
                        bool tf32) {
  const bool transposed = transpose != CUBLAS_OP_N;
  const auto rows = static_cast<std::int64_t>(transposed ? layout.columns : layout.rows);
  const auto columns = static_cast<std::int64_t>(transposed ? layout.rows : layout.columns);
  std::vector<float> result(static_cast<std::size_t>(rows * columns));
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = transposed ? column + row * layout.ld : row + column * layout.ld;
      const float value = read(memory, static_cast<std::int32_t>(layout.type), offset + at);
      result[static_cast<std::size_t>(row + column * rows)] = tf32 ? to_tf32(value) : value;
    }
  }
  return result;
}

constexpr float gelu_inner = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float gelu_cubic = 0.044715F;

float gelu(float x) { return 0.5F * x * (1 + std::tanh(gelu_inner * (x + gelu_cubic * x * x * x))); }

float gelu_derivative(float x) {
  const float t = std::tanh(gelu_inner * (x + gelu_cubic * x * x * x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * gelu_inner * (1 + 3 * gelu_cubic * x * x);
}

}  // namespace

std::size_t size_of_type(std::int32_t type) {
  if (type == CUDA_R_32F) return 4;
  return type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 0;
}

cublasStatus_t check(const Product& product) {
  const MatmulDescriptor& how = product.descriptor;
  const bool tf32 = how.compute_type == CUBLAS_COMPUTE_32F_FAST_TF32;
  if (how.compute_type != CUBLAS_COMPUTE_32F && !tf32) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (how.scale_type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (how.pointer_mode != CUBLASLT_POINTER_MODE_HOST) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (const MatrixLayout* layout : {&product.a, &product.b, &product.c, &product.d}) {
    if (size_of_type(static_cast<std::int32_t>(layout->type)) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (layout->order != CUBLASLT_ORDER_COL) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (layout->rows == 0 || layout->columns == 0 || layout->batch_count < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (layout->ld < static_cast<std::int64_t>(layout->rows)) return CUBLAS_STATUS_INVALID_VALUE;
    if (layout->batch_count != product.d.batch_count) return CUBLAS_STATUS_INVALID_VALUE;
  }
  // A and B of one type; C and D of one type, theirs or fp32.
  if (product.a.type != product.b.type || product.c.type != product.d.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (product.d.type != product.a.type && product.d.type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (tf32 && product.a.type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool a_transposed = how.transpose_a != CUBLAS_OP_N;
  const bool b_transposed = how.transpose_b != CUBLAS_OP_N;
  const std::uint64_t m = a_transposed ? product.a.columns : product.a.rows;
  const std::uint64_t k = a_transposed ? product.a.rows : product.a.columns;
  const std::uint64_t n = b_transposed ? product.b.rows : product.b.columns;
  if (k != (b_transposed ? product.b.columns : product.b.rows)) return CUBLAS_STATUS_INVALID_VALUE;
  for (const MatrixLayout* layout : {&product.c, &product.d}) {
    if (layout->rows != m || layout->columns != n) return CUBLAS_STATUS_INVALID_VALUE;
  }
  switch (how.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS: break;
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
      if (how.auxiliary_ld < static_cast<std::int64_t>(m) || how.auxiliary_ld % 8 != 0) {
        return CUBLAS_STATUS_INVALID_VALUE;
      }
      break;
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (how.bias_type >= 0 && how.bias_type != static_cast<std::int32_t>(product.d.type)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (how.auxiliary_type >= 0 && how.auxiliary_type != static_cast<std::int32_t>(product.d.type)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (how.epilogue != CUBLASLT_EPILOGUE_DEFAULT && product.d.batch_count != 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

void multiply(const Product& product, const Operands& operands) {
  const MatmulDescriptor& how = product.descriptor;
  const bool tf32 = how.compute_type == CUBLAS_COMPUTE_32F_FAST_TF32;
  const auto m = static_cast<std::int64_t>(product.d.rows);
  const auto n = static_cast<std::int64_t>(product.d.columns);
  const auto k = static_cast<std::int64_t>(how.transpose_a == CUBLAS_OP_N ? product.a.columns : product.a.rows);
  const auto type = static_cast<std::int32_t>(product.d.type);
  const std::int32_t bias_type = how.bias_type >= 0 ? how.bias_type : type;
  std::vector<float> sums(static_cast<std::size_t>(m));
  for (int batch = 0; batch < product.d.batch_count; ++batch) {
    const auto a = load(operands.a, product.a, how.transpose_a, batch * product.a.batch_stride, tf32);
    const auto b = load(operands.b, product.b, how.transpose_b, batch * product.b.batch_stride, tf32);
    for (std::int64_t column = 0; column < n; ++column) {
      sums.assign(sums.size(), 0.0F);
      for (std::int64_t i = 0; i < k; ++i) {
        const float factor = b[static_cast<std::size_t>(i + column * k)];
        const float* values = a.data() + i * m;
        for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += values[row] * factor;
      }
      for (std::int64_t row = 0; row < m; ++row) {
        float value = operands.alpha * sums[static_cast<std::size_t>(row)];
        if (operands.beta != 0) {  // with beta 0, C is not read: it may be NaN
          value += operands.beta * read(operands.c, type, batch * product.c.batch_stride + row + column * product.c.ld);
        }
        if ((how.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) value += read(how.bias, bias_type, row);
        const std::int64_t beside = row + column * how.auxiliary_ld;
        if (how.epilogue == CUBLASLT_EPILOGUE_DGELU) {
          value *= gelu_derivative(read(how.auxiliary, type, beside));
        } else if ((how.epilogue & CUBLASLT_EPILOGUE_GELU) != 0) {
          if ((how.epilogue & with_auxiliary) != 0) write(how.auxiliary, type, beside, value);
          value = gelu(value);
        }
        write(operands.d, type, batch * product.d.batch_stride + row + column * product.d.ld, value);
      }
    }
  }
}

}  // namespace zt::emulation
