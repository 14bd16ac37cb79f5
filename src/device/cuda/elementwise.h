// Operations on single elements: one pass over memory, with accesses of up to 16 bytes where addresses allow.
// For .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "device/cuda/kernel_support.h"

namespace zt::cuda {

// N elements that are read and written at once; the address must be a multiple of their bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N) Elements {
  T values[N];
};
template <int N, typename T>
__device__ __forceinline__ Elements<T, N> load_elements(const T* from) {
  return *reinterpret_cast<const Elements<T, N>*>(from);
}
template <typename T, int N>
__device__ __forceinline__ void store_elements(T* to, const Elements<T, N>& elements) {
  *reinterpret_cast<Elements<T, N>*>(to) = elements;
}
template <typename T>
constexpr int elements_per_pack = Pack<T>::size;

constexpr int elementwise_threads = 256;

// Body: load<M>(i) reads what the elements i ... i + M - 1 need, store<M>(i, loaded) computes and writes them, for
// M = N and M = 1. All of a thread's loads come before its first store, so that many bytes are on their way at once.
// Which thread has which element depends on `packed`: what a body computes must not.
template <int N, int Unroll, typename Body>
__global__ void __launch_bounds__(elementwise_threads, 4)  // 64 registers: none need be spilled to have more blocks
    elementwise_kernel(const __grid_constant__ Body body, std::int64_t count, bool packed) {
  constexpr int tile = elementwise_threads * N * Unroll;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * tile;
  const auto thread = static_cast<int>(threadIdx.x);
  if (!packed) {
    const std::int64_t end = first + tile < count ? first + tile : count;
    for (std::int64_t i = first + thread; i < end; i += elementwise_threads) {
      body.template store<1>(i, body.template load<1>(i));
    }
    return;
  }
  const auto place = [&](int turn) { return first + (turn * elementwise_threads + thread) * N; };
  decltype(body.template load<N>(0)) loaded[Unroll] = {};
#pragma unroll
  for (int turn = 0; turn < Unroll; ++turn) {
    if (place(turn) + N <= count) loaded[turn] = body.template load<N>(place(turn));
  }
#pragma unroll
  for (int turn = 0; turn < Unroll; ++turn) {
    if (place(turn) + N <= count) body.template store<N>(place(turn), loaded[turn]);
  }
  // The last elements, if they do not fill an access.
  const std::int64_t rest = count - count % N + thread;
  if (blockIdx.x == gridDim.x - 1 && rest < count) body.template store<1>(rest, body.template load<1>(rest));
}

template <int N, int Unroll, typename Body>
void for_elements(const char* name, const Body& body, std::int64_t count, bool packed, const Launch& where) {
  launch(name, elementwise_kernel<N, Unroll, Body>, blocks_for(count, elementwise_threads * N * Unroll),
         elementwise_threads, 0, where, body, count, packed);
}

// Whether N elements can be read at once from where these tensors begin. One that is left out does not matter.
template <int N>
bool can_pack(std::initializer_list<ConstTensorView> views) {
  return std::all_of(views.begin(), views.end(), [](const ConstTensorView& view) {
    return reinterpret_cast<std::uintptr_t>(view.data) % (N * size_of(view.dtype)) == 0;
  });
}

}  // namespace zt::cuda
