// Which elements of P are kept, as bits, for the tiles of attention's kernels. For .cu files only.
//
// A draw of Philox serves four keys of a query that follow each other. On tensor cores these are not all in the
// registers of one lane, so the lanes of a warp draw spans of 16 keys of different queries, and hand the bits to those
// that need them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "device/cuda/kernel_support.h"

namespace zt::cuda::attention {

struct Keeping {
  std::uint64_t key = 0;
  std::uint64_t first = 0;       // index of the first element of the first sample
  std::uint64_t per_sample = 0;  // indices between samples
  std::uint32_t threshold = 0;   // elements with smaller words are dropped; 0: no dropout
  float factor = 1.0F;           // of kept elements
};

inline Keeping keeping_of(const Dropout& dropout) {
  Keeping keeping;
  if (dropout.probability <= 0.0F) return keeping;
  keeping.key = dropout.key;
  keeping.first = static_cast<std::uint64_t>(dropout.first_sample * dropout.elements_per_sample);
  keeping.per_sample = static_cast<std::uint64_t>(dropout.elements_per_sample);
  // (word >> 8) * 2^-24 < probability, in integers: both sides are exact in double.
  const double bound = std::ceil(static_cast<double>(dropout.probability) * 0x1p24);
  keeping.threshold = static_cast<std::uint32_t>(std::min(bound, 0x1p24 - 1.0)) << 8;
  keeping.factor = 1.0F / (1.0F - dropout.probability);
  return keeping;
}

// Of the first key of a query's row of P.
__device__ __forceinline__ std::uint64_t row_index(const Keeping& keeping, int sample, int head, int length,
                                                   int query) {
  const auto row =
      static_cast<std::uint64_t>(head) * static_cast<std::uint64_t>(length) + static_cast<std::uint64_t>(query);
  return keeping.first + static_cast<std::uint64_t>(sample) * keeping.per_sample +
         row * static_cast<std::uint64_t>(length);
}

__device__ __forceinline__ std::uint32_t kept_of_block(const Keeping& keeping, std::uint64_t block) {
  const RandomBlock drawn = random_block(keeping.key, block);
  std::uint32_t bits = 0;
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    // Not `(a >= b ? 1U : 0U) << word`, which GCC 12 gets wrong at -O1 with its undefined-behaviour sanitizer.
    if (drawn.words[word] >= keeping.threshold) bits |= 1U << word;
  }
  return bits;
}

// With a key that the compiler cannot see through: else it would hold the keys of Philox's rounds in 20 registers all
// along.
__device__ __forceinline__ Keeping opaque_key(Keeping keeping) {
  const auto low = gpu::opaque(static_cast<std::uint32_t>(keeping.key));
  keeping.key = keeping.key >> 32 << 32 | low;
  const auto high = gpu::opaque(static_cast<std::uint32_t>(keeping.key >> 32));
  keeping.key = static_cast<std::uint64_t>(high) << 32 | low;
  return keeping;
}

// Bit i: element index + i is kept. Count: 4 or 16.
template <int Count>
__device__ __forceinline__ std::uint32_t kept_from(const Keeping& keeping, std::uint64_t index) {
  const std::uint64_t block = index / 4;
  const auto skipped = static_cast<int>(index % 4);
  std::uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < Count / 4; ++i) bits |= kept_of_block(keeping, block + static_cast<unsigned>(i)) << (4 * i);
  if (skipped != 0) bits |= kept_of_block(keeping, block + Count / 4) << Count;
  return (bits >> skipped) & ((1U << Count) - 1U);
}

// For a warp's tile of 16 M queries by N keys in mma's layout of accumulators (gpu.h).
template <int M, int N>
class KeptOfQueries {
 public:
  // The whole warp. query, key: the tile's first.
  __device__ __forceinline__ void draw(const Keeping& all, int sample, int head, int length, int query, int key) {
    const Keeping keeping = opaque_key(all);
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int word = 0; word < words; ++word) words_[word] = 0;
#pragma unroll 1
    for (int i = 0; i < 2 * words; ++i) {
      const int unit = i / 2 * 4 + lane % 4;
      if (unit >= units) continue;
      const int row = query + unit / (N / 16) * 16 + i % 2 * 8 + lane / 4;
      const std::uint64_t index =
          row_index(keeping, sample, head, length, row) + static_cast<unsigned>(key + unit % (N / 16) * 16);
      const std::uint32_t bits = kept_from<16>(keeping, index) << (16 * (i % 2));
#pragma unroll
      for (int word = 0; word < words; ++word) words_[word] |= i / 2 == word ? bits : 0U;
    }
  }

  // The bits of 16 queries by 16 keys that this lane needs, for kept(). The whole warp.
  __device__ __forceinline__ std::uint32_t part(int m, int span) const {
    const int unit = m * (N / 16) + span;
    const auto bits = __shfl_sync(all_lanes, words_[unit / 4], unit % 4, 4);
    return bits >> (threadIdx.x % 4 * 2);
  }
  // Of element `element` of accumulator `column`, 0 or 1, of the part.
  static __device__ __forceinline__ bool kept(std::uint32_t part, int column, int element) {
    return ((part >> (8 * column + element % 2 + 16 * (element / 2))) & 1U) != 0;
  }

 private:
  static constexpr int units = M * N / 16;  // spans of 16 keys of 2 queries
  static constexpr int words = (units + 3) / 4;
  std::uint32_t words_[words];
};

// For a warp's tile of 16 M keys by N queries: the transpose.
template <int M, int N>
class KeptOfKeys {
 public:
  __device__ __forceinline__ void draw(const Keeping& all, int sample, int head, int length, int query, int key) {
    static_assert(M <= 2);
    const Keeping keeping = opaque_key(all);
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int word = 0; word < words; ++word) words_[word] = 0;
#pragma unroll 1
    for (int i = 0; i < M * words; ++i) {
      const int row = query + i / M * 32 + lane;
      const std::uint64_t index =
          row_index(keeping, sample, head, length, row) + static_cast<unsigned>(key + i % M * 16);
      const std::uint32_t bits = kept_from<16>(keeping, index) << (16 * (i % M));
#pragma unroll
      for (int word = 0; word < words; ++word) words_[word] |= i / M == word ? bits : 0U;
    }
  }

  // The bits of 16 M keys of the two queries of accumulator `column`, for kept(). The whole warp.
  struct Part {
    std::uint32_t queries[2];
  };
  __device__ __forceinline__ Part part(int column) const {
    const auto lane = static_cast<int>(threadIdx.x) % 32;
    const int query = column % 4 * 8 + lane % 4 * 2;
    return {{__shfl_sync(all_lanes, words_[column / 4], query) >> (lane / 4),
             __shfl_sync(all_lanes, words_[column / 4], query + 1) >> (lane / 4)}};
  }
  static __device__ __forceinline__ bool kept(const Part& part, int m, int element) {
    return ((part.queries[element % 2] >> (16 * m + 8 * (element / 2))) & 1U) != 0;
  }

 private:
  static_assert(N % 32 == 0);
  static constexpr int words = N / 32;  // of a lane: 16 M keys of one query each
  std::uint32_t words_[words];
};

}  // namespace zt::cuda::attention
