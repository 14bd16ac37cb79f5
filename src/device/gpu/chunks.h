// How kernels cut sums over rows into chunks, each summed by one block. Functions of the shape alone: the cut decides
// the order of additions, so it may depend on nothing else. Workspace is sized by the same functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/operations.h"

namespace zt::gpu {

// Chunk i is of the rows i * rows_per_chunk up to the next chunk's or the last one.
struct RowChunks {
  std::int64_t rows_per_chunk = 1, chunks = 0;
};

inline RowChunks cut_rows(std::int64_t rows, std::int64_t most_chunks, std::int64_t least_rows) {
  if (rows == 0) return {};
  const std::int64_t per_chunk = std::max(least_rows, (rows + most_chunks - 1) / most_chunks);
  return {per_chunk, (rows + per_chunk - 1) / per_chunk};
}

// A chunk's partial sums of `columns` columns lie this many floats before the next chunk's, so that they can be stored
// 16 bytes at once.
inline std::int64_t partial_stride(std::int64_t columns) { return (columns + 7) / 8 * 8; }

// Column sums in tiles of 32 lanes, each with 16 bytes of a row. About a thousand blocks fill the largest GPUs several
// times over; eight warps of a block share its rows, so that fewer than 64 of them are not worth the partial sums.
constexpr int column_sum_warps = 8;
inline RowChunks column_sum_chunks(std::int64_t rows, std::int64_t columns, DType dtype) {
  const std::int64_t tile = std::int64_t{32} * 16 / static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t tiles = std::max<std::int64_t>(1, (columns + tile - 1) / tile);
  return cut_rows(rows, std::max<std::int64_t>(1, 1024 / tiles), 64);
}

// The backward pass of layer normalization: a block goes through a chunk row by row, for the row's gradient and the
// weights' sums at once. Rows too wide for that take column sums for the latter.
inline RowChunks norm_backward_chunks(std::int64_t rows) { return cut_rows(rows, 1024, 8); }
constexpr int norm_backward_threads = 512, norm_backward_packs = 2;  // at most: of a block, of 16 bytes a thread
inline bool norm_backward_fits(std::int64_t columns, DType dtype) {
  return columns * static_cast<std::int64_t>(size_of(dtype)) <=
         std::int64_t{16} * norm_backward_threads * norm_backward_packs;
}

// The stable radix sort of positions by token: `passes` of `bits` bits each, over tiles of positions.
constexpr std::int64_t sort_tile = 1024;
constexpr int most_sort_bits = 9;
struct SortPlan {
  int passes = 1, bits = 1;
  std::int64_t tiles = 0;
  std::int64_t bins() const { return std::int64_t{1} << bits; }
};
inline SortPlan token_sort(std::int64_t positions, std::int64_t vocabulary) {
  int token_bits = 1;
  while ((std::int64_t{1} << token_bits) < vocabulary) ++token_bits;
  SortPlan plan;
  plan.passes = (token_bits + most_sort_bits - 1) / most_sort_bits;
  plan.bits = (token_bits + plan.passes - 1) / plan.passes;
  plan.tiles = (positions + sort_tile - 1) / sort_tile;
  return plan;
}
// Bytes of the sort's workspace: where each token's positions begin and end, counts of digits by tile and in all,
// tokens and positions twice.
inline std::int64_t token_sort_bytes(std::int64_t positions, std::int64_t vocabulary) {
  const SortPlan plan = token_sort(positions, vocabulary);
  return (2 * vocabulary + plan.bins() * (plan.tiles + 1) + 4 * positions) *
         static_cast<std::int64_t>(sizeof(std::int32_t));
}

}  // namespace zt::gpu
