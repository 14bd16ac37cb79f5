// Sums over rows, cut into chunks by shape (device/gpu/chunks.h): partial sums in fp32, one row of them a chunk, then
// the partial sums of a column in order. For .cu files only.
#pragma once

#include "device/cuda/rows.h"
#include "device/gpu/chunks.h"

namespace zt::cuda {

// Sums that a kernel of partial sums has left in memory, and where they go.
struct PartialSums {
  const float* partials = nullptr;  // [chunks][stride]
  TensorView out{};                 // [columns], or none wanted
  bool add = false;
};
// out[c] (+)= the sum of partials[:, c], for both in one launch; 0 if there are no chunks.
void add_partial_sums(const PartialSums& first, const PartialSums& second, std::int64_t chunks, std::int64_t stride,
                      std::int64_t columns, const Launch& where);

// partials[quantity][chunk][column] = the sum over the chunk's rows of what terms adds: terms(row, at, columns, whole,
// sums) adds its quantities of columns at, at + 1, ... of a row to sums[quantity][]. A block takes 32 packs of columns
// of one chunk; its warps take turns with the rows and are added up in order.
template <typename T, int quantities, typename Terms>
__global__ void __launch_bounds__(32 * gpu::column_sum_warps)
    column_sums_kernel(Terms terms, bool whole, std::int64_t rows, int columns, std::int64_t rows_per_chunk, int tiles,
                       float* partials, std::int64_t stride, std::int64_t chunks) {
  constexpr int size = Pack<T>::size;
  constexpr int warps = gpu::column_sum_warps;
  __shared__ float shared[warps][32 * size];
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int tile = static_cast<int>(blockIdx.x % static_cast<unsigned>(tiles));
  const std::int64_t chunk = blockIdx.x / static_cast<unsigned>(tiles);
  const int first_column = tile * 32 * size;
  const int at = first_column + lane * size;
  const std::int64_t end = min(rows, (chunk + 1) * rows_per_chunk);
  float sums[quantities][size] = {};
  std::int64_t row = chunk * rows_per_chunk + warp;
  if (at < columns && whole) {
#pragma unroll 4
    for (; row < end; row += warps) terms(row, at, columns, true, sums);
  } else if (at < columns) {
    for (; row < end; row += warps) terms(row, at, columns, false, sums);
  }
  for (int quantity = 0; quantity < quantities; ++quantity) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < size; ++k) shared[warp][k * 32 + lane] = sums[quantity][k];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < 32 * size; i += 32 * warps) {
      float sum = shared[0][i % size * 32 + i / size];
      for (int w = 1; w < warps; ++w) sum += shared[w][i % size * 32 + i / size];
      if (first_column + i < columns) partials[(quantity * chunks + chunk) * stride + first_column + i] = sum;
    }
  }
}

// The columns' partial sums of `quantities` quantities, [quantity][chunk][partial_stride(columns)].
template <typename T, int quantities, typename Terms>
void column_sums(const char* name, const Terms& terms, bool whole, std::int64_t rows, std::int64_t columns,
                 const gpu::RowChunks& cut, float* partials, const Launch& where) {
  const int tiles = static_cast<int>((columns + 32 * Pack<T>::size - 1) / (32 * Pack<T>::size));
  launch(name, column_sums_kernel<T, quantities, Terms>, static_cast<unsigned>(cut.chunks * tiles),
         32 * gpu::column_sum_warps, 0, where, terms, whole, rows, static_cast<int>(columns), cut.rows_per_chunk, tiles,
         partials, gpu::partial_stride(columns), cut.chunks);
}

}  // namespace zt::cuda
