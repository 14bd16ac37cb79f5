// What kernels that work on rows have in common: 16 bytes of a row at once, or as many of its elements as there are;
// vectors and results of any format. For .cu files only.
//
// A row is cut into packs of 16 bytes from its start whether or not memory is aligned to them ("whole": all packs of
// all rows are, and no pack is cut short by the row's end), so alignment never changes the order of a sum. Columns are
// counted in int: a row has less than 2^31 elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/cuda/dropper.h"
#include "device/cuda/kernel_support.h"

namespace zt::cuda {

// Whether rows of so many elements of T at these addresses are made of aligned packs. Null addresses do not count.
template <typename T, typename... Addresses>
bool are_whole(std::int64_t columns, const Addresses*... addresses) {
  return columns % Pack<T>::size == 0 && (is_aligned(addresses) && ...);
}

template <typename T>
__device__ __forceinline__ int valid_elements(int at, int columns) {
  return max(0, min(Pack<T>::size, columns - at));
}

// Elements at ... at + size - 1 of a row; those from `columns` on are 0.
template <typename T>
__device__ __forceinline__ Pack<T> load_row_pack(const T* row, int at, int columns, bool whole) {
  if (whole && at < columns) return load_pack(row + at);
  Pack<T> pack;
  const int valid = valid_elements<T>(at, columns);
#pragma unroll
  for (int k = 0; k < Pack<T>::size; ++k) pack.values[k] = k < valid ? row[at + k] : from_float<T>(0.0F);
  return pack;
}
template <typename T>
__device__ __forceinline__ void store_row_pack(T* row, int at, int columns, bool whole, const Pack<T>& pack) {
  if (whole && at < columns) {
    store_pack(row + at, pack);
    return;
  }
  const int valid = valid_elements<T>(at, columns);
#pragma unroll
  for (int k = 0; k < Pack<T>::size; ++k) {
    if (k < valid) row[at + k] = pack.values[k];
  }
}

// A thread's packs of a row, at first, first + stride, ...: one branch for all, so that all loads are under way at
// once.
template <typename T, int count>
__device__ __forceinline__ void load_row_packs(const T* row, int first, int stride, int columns, bool whole,
                                               Pack<T> (&packs)[count]) {
  if (whole) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int at = first + i * stride;
      packs[i] = {};
      if (at < columns) packs[i] = load_pack(row + at);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) packs[i] = load_row_pack(row, first + i * stride, columns, false);
  }
}

template <typename S, int N>
__device__ __forceinline__ void load_converted(const S* from, int valid, bool whole, float (&out)[N]) {
  if (whole) {
    if constexpr (N % Pack<S>::size == 0) {
#pragma unroll
      for (int k = 0; k < N; k += Pack<S>::size) {
        const Pack<S> pack = load_pack(from + k);
#pragma unroll
        for (int j = 0; j < Pack<S>::size; ++j) out[k + j] = to_float(pack.values[j]);
      }
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) out[k] = k < valid ? to_float(from[k]) : 0.0F;
}
// Elements at ... at + N - 1 of a tensor of any format, as floats; those from `valid` on become 0. whole: address and
// index allow packs.
template <int N>
__device__ __forceinline__ void load_floats(const ConstTensorView& vector, std::int64_t at, int valid, bool whole,
                                            float (&out)[N]) {
  if (vector.dtype == DType::bf16) {
    load_converted(static_cast<const __nv_bfloat16*>(vector.data) + at, valid, whole, out);
  } else if (vector.dtype == DType::f16) {
    load_converted(static_cast<const __half*>(vector.data) + at, valid, whole, out);
  } else {
    load_converted(static_cast<const float*>(vector.data) + at, valid, whole, out);
  }
}

// out = round(out + round(value)) with add, else round(value).
template <typename T>
__device__ __forceinline__ T with_result(T before, float value, bool add) {
  const T rounded = from_float<T>(value);
  return add ? from_float<T>(to_float(before) + to_float(rounded)) : rounded;
}
template <typename T>
__device__ __forceinline__ void store_result(T* to, float value, bool add) {
  *to = with_result(add ? *to : from_float<T>(0.0F), value, add);
}

template <typename S, int N>
__device__ __forceinline__ void store_converted(S* to, int valid, bool whole, const float (&values)[N], bool add) {
  if (whole) {
    if constexpr (N % Pack<S>::size == 0) {
#pragma unroll
      for (int k = 0; k < N; k += Pack<S>::size) {
        Pack<S> pack{};
        if (add) pack = load_pack(to + k);
#pragma unroll
        for (int j = 0; j < Pack<S>::size; ++j) pack.values[j] = with_result(pack.values[j], values[k + j], add);
        store_pack(to + k, pack);
      }
      return;
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) {
    if (k < valid) store_result(to + k, values[k], add);
  }
}
// Results for elements at ... at + N - 1 of a tensor of any format; those from `valid` on are left out.
template <int N>
__device__ __forceinline__ void store_results(const TensorView& out, std::int64_t at, int valid, bool whole,
                                              const float (&values)[N], bool add) {
  switch (out.dtype) {
    case DType::bf16: store_converted(static_cast<__nv_bfloat16*>(out.data) + at, valid, whole, values, add); return;
    case DType::f16: store_converted(static_cast<__half*>(out.data) + at, valid, whole, values, add); return;
    case DType::f32: store_converted(static_cast<float*>(out.data) + at, valid, whole, values, add); return;
  }
}

// Threads of a block that has one pack a thread for rows of so many packs: whole warps, at most `most`.
inline int threads_for(std::int64_t packs, int most) {
  return static_cast<int>(std::clamp<std::int64_t>((packs + 31) / 32 * 32, 32, most));
}

}  // namespace zt::cuda
