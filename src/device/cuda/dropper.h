// Dropout of consecutive elements within kernels that do something else with them too. For .cu files only.
#pragma once

#include <cstdint>

#include "device/cuda/kernel_support.h"

namespace zt::cuda {

// A Dropout as kernels want it: divided and multiplied on the host.
struct Dropper {
  explicit Dropper(const Dropout& dropout)
      : key(dropout.key),
        first(static_cast<std::uint64_t>(dropout.first_sample) *
              static_cast<std::uint64_t>(dropout.elements_per_sample)),
        probability(dropout.probability),
        scale(1.0F / (1.0F - dropout.probability)) {}

  // The elements from `element` on, counted from the first of the micro-batch.
  template <int count>
  __device__ __forceinline__ void apply(float (&values)[count], std::int64_t element) const {
    static_assert(count % 4 == 0);
    if (probability <= 0.0F) return;
    const std::uint64_t index = first + static_cast<std::uint64_t>(element);
    if (index % 4 == 0) {
      // Four elements share a block of random words.
#pragma unroll
      for (int k = 0; k < count; k += 4) {
        const RandomBlock block = random_block(key, index / 4 + static_cast<unsigned>(k / 4));
#pragma unroll
        for (int j = 0; j < 4; ++j) values[k + j] = dropped(values[k + j], block.words[j]);
      }
      return;
    }
    // Rows whose length is no multiple of 4. Registers have no index, hence the choices.
#pragma unroll 1
    for (int k = 0; k < count; ++k) {
      const std::uint64_t here = index + static_cast<unsigned>(k);
      const RandomBlock block = random_block(key, here / 4);
      const auto word = static_cast<unsigned>(here) % 4;
      const std::uint32_t low = word == 0 ? block.words[0] : block.words[1];
      const std::uint32_t high = word == 2 ? block.words[2] : block.words[3];
      const std::uint32_t bits = word < 2 ? low : high;
#pragma unroll
      for (int j = 0; j < count; ++j) values[j] = j == k ? dropped(values[j], bits) : values[j];
    }
  }

  std::uint64_t key, first;
  float probability, scale;

 private:
  __device__ __forceinline__ float dropped(float value, std::uint32_t bits) const {
    return uniform_of(bits) < probability ? 0.0F : __fmul_rn(value, scale);
  }
};

}  // namespace zt::cuda
