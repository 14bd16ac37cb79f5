// The squared error of rows with its gradient.
#include "device/cuda/kernel_support.h"

namespace zt::cuda {
namespace {

constexpr int threads = 256;
// Up to here a warp has a row, above a block.
constexpr std::int64_t columns_of_a_warp = 1024;

template <typename T>
struct Rows {
  const T* prediction;
  const float* targets;
  const std::int32_t* valid;
  float* losses;
  T* d_prediction;
  std::int64_t rows, columns;
  float scale;
};

// RowThreads threads a row, each of which has every RowThreads-th column whatever the address is.
template <int RowThreads, typename T>
__global__ void __launch_bounds__(threads) squared_error_kernel(const __grid_constant__ Rows<T> all) {
  constexpr int unroll = 4;
  __shared__ float shared[threads / 32];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (threads / RowThreads) + threadIdx.x / RowThreads;
  if (row >= all.rows) return;  // whole warps, or none of the block
  const auto first = static_cast<std::int64_t>(threadIdx.x % RowThreads);
  const T* prediction = all.prediction + row * all.columns;
  const float* targets = all.targets + row * all.columns;
  T* d_prediction = all.d_prediction == nullptr ? nullptr : all.d_prediction + row * all.columns;
  const bool counts = all.columns != 0 && (all.valid == nullptr || all.valid[row] != 0);
  const auto columns = static_cast<float>(all.columns);
  const float factor = __fdiv_rn(2.0F, columns);
  float squares = 0.0F;
  for (std::int64_t begin = first; begin < all.columns; begin += unroll * RowThreads) {
    float difference[unroll] = {};
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::int64_t c = begin + u * RowThreads;
      if (counts && c < all.columns) difference[u] = __fsub_rn(to_float(prediction[c]), targets[c]);
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      const std::int64_t c = begin + u * RowThreads;
      if (c >= all.columns) continue;
      squares = __fmaf_rn(difference[u], difference[u], squares);
      if (d_prediction == nullptr) continue;
      d_prediction[c] = from_float<T>(counts ? __fmul_rn(__fmul_rn(difference[u], factor), all.scale) : 0.0F);
    }
  }
  squares = RowThreads == 32 ? warp_sum(squares) : block_sum(squares, shared);
  if (first == 0) all.losses[row] = counts ? __fdiv_rn(squares, columns) : 0.0F;
}

}  // namespace

void run(const SquaredError& op, const Launch& where) {
  by_type(op.prediction.dtype, [&]<typename T>(T*) {
    const Rows<T> rows{pointer<T>(op.prediction),   op.targets, op.valid,   op.losses,
                       pointer<T>(op.d_prediction), op.rows,    op.columns, op.scale};
    if (op.columns <= columns_of_a_warp) {
      launch("squared_error", squared_error_kernel<32, T>, blocks_for(op.rows, threads / 32), threads, 0, where, rows);
    } else {
      launch("squared_error", squared_error_kernel<threads, T>, blocks_for(op.rows, 1), threads, 0, where, rows);
    }
  });
}

}  // namespace zt::cuda
