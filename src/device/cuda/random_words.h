// Random words of consecutive indices, four to a Philox block. For .cu files only.
#pragma once

#include <cstdint>

#include "device/cuda/kernel_support.h"

namespace zt::cuda {

template <int N>
struct RandomWords {
  std::uint32_t words[N];
};

// Of a block's four, by selection: an index that is known at run time only would send the array to memory.
__device__ __forceinline__ std::uint32_t word_of(const RandomBlock& block, unsigned which) {
  const std::uint32_t low = which == 0 ? block.words[0] : block.words[1];
  const std::uint32_t high = which == 2 ? block.words[2] : block.words[3];
  return which < 2 ? low : high;
}

// random_bits(key, first) ... random_bits(key, first + N - 1). N = 1, or a multiple of 4.
template <int N>
__device__ __forceinline__ RandomWords<N> random_words(std::uint64_t key, std::uint64_t first) {
  const auto skipped = static_cast<unsigned>(first % 4);
  if constexpr (N == 1) {
    return {{word_of(random_block(key, first / 4), skipped)}};
  } else {
    static_assert(N % 4 == 0);
    RandomWords<N> result;
    RandomBlock block = random_block(key, first / 4);
#pragma unroll
    for (int b = 0; b < N / 4; ++b) {
      if (skipped == 0) {  // the same for all threads: where a sample's elements are a multiple of 4, always
#pragma unroll
        for (int e = 0; e < 4; ++e) result.words[4 * b + e] = block.words[e];
        if (b + 1 < N / 4) block = random_block(key, first / 4 + static_cast<std::uint64_t>(b) + 1);
      } else {
        const RandomBlock next = random_block(key, first / 4 + static_cast<std::uint64_t>(b) + 1);
#pragma unroll
        for (unsigned e = 0; e < 4; ++e) {
          const unsigned which = skipped + e;
          result.words[4U * static_cast<unsigned>(b) + e] =
              which < 4 ? word_of(block, which) : word_of(next, which - 4);
        }
        block = next;
      }
    }
    return result;
  }
}

}  // namespace zt::cuda
