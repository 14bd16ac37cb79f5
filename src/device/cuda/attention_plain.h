// What attention's plain kernels have in common: tiles of 64 rows by 64 columns on the ordinary units, in fp32, for any
// dtype and head size. For .cu files only.
//
// A block has 256 threads, 16 by 16; thread (y, x) has rows 4 y ... 4 y + 3 and columns 4 x ... 4 x + 3 of a tile, and
// of an output the same rows and, of every 64 columns, the same columns. A block makes `Blocks` times 64 columns of an
// output at a time; where D is larger, other blocks (grid.y) make the rest and compute the scores again.
#pragma once

#include "device/cuda/attention.h"
#include "device/cuda/attention_rows.h"

namespace zt::cuda::attention {

constexpr int plain_threads = 256;
constexpr int plain_tile = 64;
constexpr int plain_step = 16;               // of D, or of a tile's columns, that a panel has
constexpr int panel_pitch = plain_tile + 4;  // so that 16 bytes stay aligned and columns spread over the banks
constexpr int panel_floats = 2 * plain_step * panel_pitch;
constexpr int tile_floats = plain_tile * panel_pitch;

__device__ __forceinline__ int plain_x() { return static_cast<int>(threadIdx.x) % 16; }
__device__ __forceinline__ int plain_y() { return static_cast<int>(threadIdx.x) / 16; }

// values[i][j] = sum over D of row 4 y + i of one matrix times row 4 x + j of the other, each the 64 rows from `first`
// on, of which those from `length` on count as 0. `panel`: panel_floats. The whole block.
template <typename T>
__device__ __forceinline__ void multiply_rows(float (&values)[4][4], const Rows<const T>& rows, int first_row,
                                              const Rows<const T>& columns, int first_column, int length, int head_size,
                                              float* panel) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) values[i][j] = 0.0F;
  }
  float* other_panel = panel + plain_step * panel_pitch;
  const T* row = rows.at(first_row + plain_y()) + plain_x();
  const T* column = columns.at(first_column + plain_y()) + plain_x();
  float* to = panel + plain_x() * panel_pitch + plain_y();
  for (int start = 0; start < head_size; start += plain_step) {
    __syncthreads();
    const bool is_inside = start + plain_x() < head_size;
#pragma unroll
    for (int r = 0; r < plain_tile; r += 16) {
      const bool row_inside = is_inside && first_row + plain_y() + r < length;
      const bool column_inside = is_inside && first_column + plain_y() + r < length;
      to[r] = row_inside ? to_float(row[r * rows.stride]) : 0.0F;
      to[plain_step * panel_pitch + r] = column_inside ? to_float(column[r * columns.stride]) : 0.0F;
    }
    row += plain_step;
    column += plain_step;
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < plain_step; ++k) {
      const Pack<float> a = load_pack(panel + k * panel_pitch + 4 * plain_y());
      const Pack<float> b = load_pack(other_panel + k * panel_pitch + 4 * plain_x());
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) values[i][j] = fmaf(a.values[i], b.values[j], values[i][j]);
      }
    }
  }
}

// Rounded to T, into a tile [columns, panel_pitch] from which add_product() reads. Before it, threads may still read
// the tile of the last turn: multiply_rows() comes in between.
template <typename T>
__device__ __forceinline__ void store_rounded(const float (&values)[4][4], float* tile) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    Pack<float> column;
#pragma unroll
    for (int i = 0; i < 4; ++i) column.values[i] = to_float(from_float<T>(values[i][j]));
    store_pack(tile + (4 * plain_x() + j) * panel_pitch + 4 * plain_y(), column);
  }
}

// sums[i][4 c + j] += sum over the tile's columns k of tile[4 y + i, k] * row first + k of `rows`, element
// first_d + 64 c + 4 x + j. The whole block.
template <int Blocks, typename T>
__device__ __forceinline__ void add_product(float (&sums)[4][4 * Blocks], const float* tile, const Rows<const T>& rows,
                                            int first, int length, int first_d, int head_size, float* panel) {
  constexpr int width = plain_tile * Blocks;
  static_assert(plain_step * width <= panel_floats);
  static_assert(plain_threads % width == 0);
  const int end = min(plain_tile, length - first);  // columns beyond are 0
  const int k_in_panel = static_cast<int>(threadIdx.x) / width;
  const int d = first_d + static_cast<int>(threadIdx.x) % width;
  const T* row = rows.at(first + k_in_panel) + d;
  for (int start = 0; start < end; start += plain_step) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < plain_step * width; i += plain_threads) {
      const int k = start + k_in_panel + i / width;
      panel[i + static_cast<int>(threadIdx.x)] =
          k < end && d < head_size ? to_float(row[(start + i / width) * rows.stride]) : 0.0F;
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < plain_step; ++k) {
      const Pack<float> left = load_pack(tile + (start + k) * panel_pitch + 4 * plain_y());
#pragma unroll
      for (int c = 0; c < Blocks; ++c) {
        const Pack<float> right = load_pack(panel + k * width + plain_tile * c + 4 * plain_x());
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
          for (int j = 0; j < 4; ++j) sums[i][4 * c + j] = fmaf(left.values[i], right.values[j], sums[i][4 * c + j]);
        }
      }
    }
  }
}

// Row 4 y + i times factor[i] to row first + 4 y + i of `rows`.
template <int Blocks, typename T>
__device__ __forceinline__ void store_sums(const float (&sums)[4][4 * Blocks], const float (&factor)[4],
                                           const Rows<T>& rows, int first, int length, int first_d, int head_size) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = first + 4 * plain_y() + i;
    if (row >= length) continue;
#pragma unroll
    for (int c = 0; c < Blocks; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int d = first_d + plain_tile * c + 4 * plain_x() + j;
        if (d < head_size) rows.at(row)[d] = from_float<T>(sums[i][4 * c + j] * factor[i]);
      }
    }
  }
}

// Bit 4 q + k: the element of query + q and key + k is kept. Before the products, when registers are free.
__device__ __forceinline__ std::uint32_t kept_of_part(const Problem& problem, const Place& place, int query, int key) {
  if (problem.keeping.threshold == 0) return 0xffffU;
  std::uint32_t bits = 0;
#pragma unroll 1
  for (int q = 0; q < 4; ++q) {
    const std::uint64_t index = row_index(problem.keeping, place.sample, place.head, problem.length, query + q);
    bits |= kept_from<4>(problem.keeping, index + static_cast<unsigned>(key)) << (4 * q);
  }
  return bits;
}

// x: tiles of all heads, y: parts of D.
template <int Blocks>
dim3 plain_grid(const Problem& problem) {
  const auto tiles = (static_cast<std::int64_t>(problem.length) + plain_tile - 1) / plain_tile;
  return {static_cast<unsigned>(problem.batch_heads() * tiles), blocks_for(problem.head_size, plain_tile * Blocks)};
}

}  // namespace zt::cuda::attention
