// What kernels have in common: number formats, packs of 16 bytes, sums over warps and blocks, dropout.
// For .cu files only.
#pragma once

#include <cstdint>
#include <string>

#include "core/random.h"
#include "device/cuda/errors.h"
#include "device/cuda/gpu.h"
#include "device/cuda/kernels.h"

namespace zt::cuda {

constexpr unsigned all_lanes = 0xffffffffU;

// Number formats. Storing rounds to nearest even; what does not fit becomes infinite.
__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float to_float(__half value) { return __half2float(value); }
template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

// Calls f with a null pointer of CUDA's type for `type`: by_type(t, [&]<typename T>(T*) {...}).
template <typename F>
decltype(auto) by_type(DType type, F&& f) {
  switch (type) {
    case DType::bf16: return f(static_cast<__nv_bfloat16*>(nullptr));
    case DType::f16: return f(static_cast<__half*>(nullptr));
    case DType::f32: break;
  }
  return f(static_cast<float*>(nullptr));
}
template <typename T>
T* pointer(TensorView view) {
  return static_cast<T*>(view.data);
}
template <typename T>
const T* pointer(ConstTensorView view) {
  return static_cast<const T*>(view.data);
}

// 16 bytes that are read and written at once; the address must be a multiple of 16.
template <typename T>
struct alignas(16) Pack {
  static constexpr int size = 16 / static_cast<int>(sizeof(T));
  T values[size];
};
template <typename T>
__device__ __forceinline__ Pack<T> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}
template <typename T>
__device__ __forceinline__ void store_pack(T* to, const Pack<T>& pack) {
  *reinterpret_cast<Pack<T>*>(to) = pack;
}
inline bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

// Sums. All lanes, or threads, take part and get the result; the order of additions is that of a tree fixed by the
// number of lanes and warps.
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(all_lanes, value, bits);
  return value;
}
__device__ __forceinline__ float warp_max(float value) {
  for (int bits = 16; bits > 0; bits /= 2) value = fmaxf(value, __shfl_xor_sync(all_lanes, value, bits));
  return value;
}
// `shared`: room for one T a warp; it may be used again at once. Blocks are one-dimensional.
template <typename T>
__device__ __forceinline__ T block_sum(T value, T* shared) {
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  T result = shared[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) result += shared[warp];
  return result;
}

// Philox4x32-10 as core/random.h defines it.
struct RandomBlock {
  std::uint32_t words[4];
};
__device__ __forceinline__ RandomBlock random_block(std::uint64_t key, std::uint64_t counter) {
  std::uint32_t x0 = static_cast<std::uint32_t>(counter);
  std::uint32_t x1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t x2 = 0;
  std::uint32_t x3 = 0;
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t high0 = __umulhi(0xD2511F53U, x0);
    const std::uint32_t low0 = 0xD2511F53U * x0;
    const std::uint32_t high1 = __umulhi(0xCD9E8D57U, x2);
    const std::uint32_t low1 = 0xCD9E8D57U * x2;
    x0 = high1 ^ x1 ^ k0;
    x1 = low1;
    x2 = high0 ^ x3 ^ k1;
    x3 = low0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{x0, x1, x2, x3}};
}
__device__ __forceinline__ std::uint32_t random_bits_at(std::uint64_t key, std::uint64_t index) {
  return random_block(key, index / 4).words[index % 4];
}
__device__ __forceinline__ float uniform_of(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

// What `value` becomes: element `element` of sample `sample` of the micro-batch (device/operations.h, Dropout).
__device__ __forceinline__ float dropped(float value, const Dropout& dropout, std::int64_t sample,
                                         std::int64_t element) {
  if (dropout.probability <= 0.0F) return value;
  const auto index =
      static_cast<std::uint64_t>((dropout.first_sample + sample) * dropout.elements_per_sample + element);
  if (uniform_of(random_bits_at(dropout.key, index)) < dropout.probability) return 0.0F;
  return value * (1.0F / (1.0F - dropout.probability));
}

// Grids. A count of 0 launches nothing.
inline unsigned blocks_for(std::int64_t count, int per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            const Launch& where, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const cudaError_t status = gpu::launch(kernel, grid, block, shared_bytes, where.stream, arguments...);
  if (status != cudaSuccess) throw RunError(describe(status, name));
}

}  // namespace zt::cuda
