#include "device/cuda/kernel_support.h"
#include "device/cuda/product_kernels.h"

namespace zt::cuda {
namespace {

constexpr int threads = 256;

__device__ __forceinline__ float load_any(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::bf16: return to_float(static_cast<const __nv_bfloat16*>(data)[i]);
    case DType::f16: return to_float(static_cast<const __half*>(data)[i]);
    case DType::f32: break;
  }
  return static_cast<const float*>(data)[i];
}

template <typename T>
__global__ void __launch_bounds__(threads) store_bias_kernel(T* out, const void* bias, DType bias_dtype, std::int64_t m,
                                                             std::int64_t n, std::int64_t stride, bool add) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (at >= m * n) return;
  const std::int64_t column = at % n;
  T& element = out[at / n * stride + column];
  const T value = from_float<T>(bias == nullptr ? 0.0F : load_any(bias, bias_dtype, column));
  element = add ? from_float<T>(to_float(element) + to_float(value)) : value;
}

}  // namespace

void store_bias(const MatMul& op, bool add, const Launch& where) {
  by_type(op.out.dtype, [&]<typename T>(T*) {
    launch("store_bias", store_bias_kernel<T>, blocks_for(op.m * op.n, threads), threads, 0, where, pointer<T>(op.out),
           op.bias.data, op.bias.dtype, op.m, op.n, op.ldc, add);
  });
}

}  // namespace zt::cuda
