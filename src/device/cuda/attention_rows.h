// Which rows of which head a block of attention's kernels works on. For .cu files only.
#pragma once

#include <cstdint>

#include "device/cuda/attention.h"

namespace zt::cuda::attention {

// Which head and tile a block has. Blocks start in order of their number: tiles of equal work of all heads come
// together, those with the most work first.
struct Place {
  int tile, sample, head;
};
__device__ __forceinline__ Place place_of_block(const Problem& problem, int tiles, bool last_tile_first) {
  const auto heads = static_cast<unsigned>(problem.heads);
  const unsigned batch_heads = static_cast<unsigned>(problem.batch) * heads;
  const auto tile = static_cast<int>(blockIdx.x / batch_heads);
  const unsigned batch_head = blockIdx.x % batch_heads;
  return {last_tile_first ? tiles - 1 - tile : tile, static_cast<int>(batch_head / heads),
          static_cast<int>(batch_head % heads)};
}

// Rows of a head in global memory.
template <typename T>
struct Rows {
  T* data;
  std::int64_t stride;  // elements

  __device__ __forceinline__ T* at(int row) const { return data + row * stride; }
};
enum class Part { queries, keys, values };
template <typename T>
__device__ __forceinline__ Rows<T> rows_of_qkv(T* qkv, const Problem& problem, const Place& place, Part part) {
  const auto width = static_cast<std::int64_t>(problem.heads) * problem.head_size;
  const std::int64_t first =
      (static_cast<std::int64_t>(place.sample) * problem.length * 3 + static_cast<int>(part)) * width +
      static_cast<std::int64_t>(place.head) * problem.head_size;
  return {qkv + first, 3 * width};
}
template <typename T>
__device__ __forceinline__ Rows<T> rows_of_out(T* out, const Problem& problem, const Place& place) {
  const auto width = static_cast<std::int64_t>(problem.heads) * problem.head_size;
  return {out + static_cast<std::int64_t>(place.sample) * problem.length * width +
              static_cast<std::int64_t>(place.head) * problem.head_size,
          width};
}

}  // namespace zt::cuda::attention
