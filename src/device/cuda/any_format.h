// Elements of tensors whose formats are known at run time only: a kernel that waits for memory has time to choose
// between three formats, and one instance of it serves all their combinations. For .cu files only.
#pragma once

#include <cstdint>

#include "device/cuda/elementwise.h"

namespace zt::cuda {

// Conversions between the bits of a format and float that agree with core/dtype.h on NaN, too: sign and upper bits of
// its payload stay, where CUDA's own conversions put one NaN in the place of all.
__device__ __forceinline__ bool is_nan_bits(unsigned bits) { return (bits & 0x7fffffffU) > 0x7f800000U; }
__device__ __forceinline__ float float_of_bf16(unsigned bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ float float_of_f16(unsigned bits) {
  if ((bits & 0x7fffU) > 0x7c00U) {
    return __uint_as_float(((bits & 0x8000U) << 16) | 0x7fc00000U | ((bits & 0x3ffU) << 13));
  }
  return __half2float(__half(__half_raw{static_cast<unsigned short>(bits)}));
}
__device__ __forceinline__ unsigned bf16_of(float value) {
  const unsigned bits = __float_as_uint(value);
  if (is_nan_bits(bits)) return (bits >> 16) | 0x40U;
  return static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x;
}
__device__ __forceinline__ unsigned f16_of(float value) {
  const unsigned bits = __float_as_uint(value);
  if (is_nan_bits(bits)) return ((bits >> 16) & 0x8000U) | 0x7e00U | ((bits >> 13) & 0x3ffU);
  return static_cast<__half_raw>(__float2half_rn(value)).x;
}

// Elements as they lie in memory: fp32 fills a word each, two of 16 bits share one.
template <int N>
struct Bits {
  unsigned words[N];
};
template <int N>
struct Floats {
  float values[N];
};

// N = 1 or 4. For 4 the address of element i must be a multiple of their bytes.
struct AnyTensor {
  void* data = nullptr;
  DType dtype = DType::f32;

  AnyTensor() = default;
  AnyTensor(const TensorView& view) : data(view.data), dtype(view.dtype) {}  // NOLINT(google-explicit-constructor)
  AnyTensor(const ConstTensorView& view)                                     // NOLINT(google-explicit-constructor)
      : data(const_cast<void*>(view.data)), dtype(view.dtype) {}

  template <int N>
  __device__ __forceinline__ Bits<N> load(std::int64_t i) const {
    static_assert(N == 1 || N == 4);
    if constexpr (N == 1) {
      if (dtype == DType::f32) return {{static_cast<const unsigned*>(data)[i]}};
      return {{static_cast<const unsigned short*>(data)[i]}};
    } else {
      if (dtype == DType::f32) {
        const uint4 bits = static_cast<const uint4*>(data)[i / 4];
        return {{bits.x, bits.y, bits.z, bits.w}};
      }
      const uint2 bits = static_cast<const uint2*>(data)[i / 4];
      return {{bits.x, bits.y, 0U, 0U}};
    }
  }

  template <int N>
  __device__ __forceinline__ Floats<N> floats(const Bits<N>& bits) const {
    Floats<N> result;
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const unsigned half = (bits.words[e / 2] >> (16 * (e % 2))) & 0xffffU;
      result.values[e] = dtype == DType::f32    ? __uint_as_float(bits.words[e])
                         : dtype == DType::bf16 ? float_of_bf16(half)
                                                : float_of_f16(half);
    }
    return result;
  }

  // Rounded once.
  template <int N>
  __device__ __forceinline__ Bits<N> bits(const Floats<N>& floats) const {
    Bits<N> result = {};
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const float value = floats.values[e];
      if (dtype == DType::f32) {
        result.words[e] = __float_as_uint(value);
      } else {
        result.words[e / 2] |= (dtype == DType::bf16 ? bf16_of(value) : f16_of(value)) << (16 * (e % 2));
      }
    }
    return result;
  }

  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Bits<N>& bits) const {
    if constexpr (N == 1) {
      if (dtype == DType::f32) {
        static_cast<unsigned*>(data)[i] = bits.words[0];
      } else {
        static_cast<unsigned short*>(data)[i] = static_cast<unsigned short>(bits.words[0]);
      }
    } else if (dtype == DType::f32) {
      static_cast<uint4*>(data)[i / 4] = make_uint4(bits.words[0], bits.words[1], bits.words[2], bits.words[3]);
    } else {
      static_cast<uint2*>(data)[i / 4] = make_uint2(bits.words[0], bits.words[1]);
    }
  }
};

}  // namespace zt::cuda
