#include "device/cuda/column_sums.h"

namespace zt::cuda {
namespace {

// A block has 32 columns; each of its warps adds up a stretch of the chunks, and the stretches are added in order.
constexpr int warps = 16;

__global__ void __launch_bounds__(32 * warps)
    add_partial_sums_kernel(PartialSums first, PartialSums second, std::int64_t chunks, std::int64_t stride,
                            std::int64_t columns) {
  __shared__ float shared[warps][32];
  const bool is_first = blockIdx.y == 0;
  const float* partials = is_first ? first.partials : second.partials;
  void* out = is_first ? first.out.data : second.out.data;
  const bool add = is_first ? first.add : second.add;
  if (out == nullptr) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  const std::int64_t stretch = (chunks + warps - 1) / warps;
  const std::int64_t end = min(chunks, (warp + 1) * stretch);
  float sum = 0.0F;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t chunk = warp * stretch; chunk < end; ++chunk) sum += partials[chunk * stride + column];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int w = 1; w < warps; ++w) sum += shared[w][lane];
  switch (is_first ? first.out.dtype : second.out.dtype) {
    case DType::bf16: store_result(static_cast<__nv_bfloat16*>(out) + column, sum, add); return;
    case DType::f16: store_result(static_cast<__half*>(out) + column, sum, add); return;
    case DType::f32: store_result(static_cast<float*>(out) + column, sum, add); return;
  }
}

}  // namespace

void add_partial_sums(const PartialSums& first, const PartialSums& second, std::int64_t chunks, std::int64_t stride,
                      std::int64_t columns, const Launch& where) {
  launch("sums of columns", add_partial_sums_kernel, dim3(blocks_for(columns, 32), second.out ? 2 : 1), 32 * warps, 0,
         where, first, second, chunks, stride, columns);
}

}  // namespace zt::cuda
