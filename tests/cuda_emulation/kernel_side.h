// The host compiler's side of src/device/cuda/gpu.h: CUDA's names as kernels use them. What is not here a kernel may
// not use. Source places come by default arguments, so that findings name the kernel's own lines.
#pragma once

// clang-format off
#include <cuda_runtime.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// clang-format on

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "block.h"
#include "launch.h"
#include "tensor_core.h"

#undef __shared__
#undef __launch_bounds__
#define __shared__ static thread_local
#define __launch_bounds__(...)

#define threadIdx (::zt::emulation::indices.thread)
#define blockIdx (::zt::emulation::indices.block)
#define blockDim (::zt::emulation::indices.block_size)
#define gridDim (::zt::emulation::indices.grid_size)

constexpr int warpSize = zt::emulation::warp_size;

namespace zt::gpu {
inline unsigned char* dynamic_shared() { return emulation::dynamic_shared(); }
}  // namespace zt::gpu

using ZtPlace = std::source_location;

// Barriers and votes.
inline void __syncthreads(ZtPlace where = ZtPlace::current()) { zt::emulation::barrier("__syncthreads", 0, where); }
inline int __syncthreads_count(int flag, ZtPlace where = ZtPlace::current()) {
  return zt::emulation::barrier("__syncthreads_count", flag != 0 ? 1 : 0, where);
}
inline int __syncthreads_or(int flag, ZtPlace where = ZtPlace::current()) {
  return zt::emulation::barrier("__syncthreads_or", flag != 0 ? 1 : 0, where) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int flag, ZtPlace where = ZtPlace::current()) {
  return zt::emulation::barrier("__syncthreads_and", flag != 0 ? 0 : 1, where) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffU, ZtPlace where = ZtPlace::current()) {
  zt::emulation::leave(zt::emulation::meet("__syncwarp", mask, "", 0, where));
}
inline unsigned __ballot_sync(unsigned mask, int flag, ZtPlace where = ZtPlace::current()) {
  return zt::emulation::collective("__ballot_sync", mask, flag, where, [mask](const zt::emulation::Meeting& meeting) {
    unsigned votes = 0;
    for (int lane = 0; lane < warpSize; ++lane) {
      if (((mask >> lane) & 1U) != 0 && meeting.of<int>(lane) != 0) votes |= 1U << lane;
    }
    return votes;
  });
}
inline int __any_sync(unsigned mask, int flag, ZtPlace where = ZtPlace::current()) {
  return __ballot_sync(mask, flag, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int flag, ZtPlace where = ZtPlace::current()) {
  return __ballot_sync(mask, flag, where) == mask ? 1 : 0;
}
// The lanes that have the caller's value.
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, ZtPlace where = ZtPlace::current()) {
  return zt::emulation::collective("__match_any_sync", mask, value, where,
                                   [mask, value](const zt::emulation::Meeting& meeting) {
                                     unsigned same = 0;
                                     for (int lane = 0; lane < warpSize; ++lane) {
                                       if (((mask >> lane) & 1U) != 0 && meeting.of<T>(lane) == value)
                                         same |= 1U << lane;
                                     }
                                     return same;
                                   });
}

namespace zt::emulation {

// The value of lane `source`, if that lies in the caller's part of `width` lanes; else the caller's own.
template <typename T>
T shuffle(const char* name, unsigned mask, T value, int source, bool inside, ZtPlace where) {
  const int me = lane();
  if (inside && ((mask >> source) & 1U) == 0)
    fail_kernel("reads a lane that is not in the mask, in " + std::string(name), where);
  return collective(name, mask, value, where,
                    [&](const Meeting& meeting) { return meeting.of<T>(inside ? source : me); });
}

template <typename T, typename Combine>
T reduce(const char* name, unsigned mask, T value, ZtPlace where, Combine combine) {
  return collective(name, mask, value, where, [&](const Meeting& meeting) {
    T result = value;
    for (int other = 0; other < warp_size; ++other) {
      if (((mask >> other) & 1U) != 0 && other != lane()) result = combine(result, meeting.of<T>(other));
    }
    return result;
  });
}

}  // namespace zt::emulation

// Shuffles. `width`, a power of two, cuts the warp into parts.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, ZtPlace where = ZtPlace::current()) {
  const int base = zt::emulation::lane() & ~(width - 1);
  return zt::emulation::shuffle("__shfl_sync", mask, value, base + (source & (width - 1)), true, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, ZtPlace where = ZtPlace::current()) {
  const int source = zt::emulation::lane() ^ bits;
  const bool inside = source < (zt::emulation::lane() & ~(width - 1)) + width;
  return zt::emulation::shuffle("__shfl_xor_sync", mask, value, source, inside, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, ZtPlace where = ZtPlace::current()) {
  const int source = zt::emulation::lane() + static_cast<int>(distance);
  const bool inside = source < (zt::emulation::lane() & ~(width - 1)) + width;
  return zt::emulation::shuffle("__shfl_down_sync", mask, value, source, inside, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, ZtPlace where = ZtPlace::current()) {
  const int source = zt::emulation::lane() - static_cast<int>(distance);
  const bool inside = source >= (zt::emulation::lane() & ~(width - 1));
  return zt::emulation::shuffle("__shfl_up_sync", mask, value, source, inside, where);
}

#define ZT_WARP_REDUCTION(name, type, expression)                                                               \
  inline type name(unsigned mask, type value, ZtPlace where = ZtPlace::current()) {                             \
    return zt::emulation::reduce(#name, mask, value, where, [](type a, type b) -> type { return expression; }); \
  }
ZT_WARP_REDUCTION(__reduce_add_sync, unsigned, a + b)
ZT_WARP_REDUCTION(__reduce_add_sync, int, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
ZT_WARP_REDUCTION(__reduce_max_sync, unsigned, a > b ? a : b)
ZT_WARP_REDUCTION(__reduce_max_sync, int, a > b ? a : b)
ZT_WARP_REDUCTION(__reduce_min_sync, unsigned, a < b ? a : b)
ZT_WARP_REDUCTION(__reduce_min_sync, int, a < b ? a : b)
ZT_WARP_REDUCTION(__reduce_and_sync, unsigned, a& b)
ZT_WARP_REDUCTION(__reduce_or_sync, unsigned, a | b)
#undef ZT_WARP_REDUCTION

// Atomics: one OS thread runs a device, so reading and writing is enough. They return the value before.
#define ZT_ATOMIC(name, type, expression)       \
  inline type name(type* address, type value) { \
    const type old = *address;                  \
    *address = static_cast<type>(expression);   \
    return old;                                 \
  }
ZT_ATOMIC(atomicAdd, float, old + value)
ZT_ATOMIC(atomicAdd, double, old + value)
ZT_ATOMIC(atomicAdd, int, static_cast<unsigned>(old) + static_cast<unsigned>(value))
ZT_ATOMIC(atomicAdd, unsigned, old + value)
ZT_ATOMIC(atomicAdd, unsigned long long, old + value)
ZT_ATOMIC(atomicMax, int, old > value ? old : value)
ZT_ATOMIC(atomicMax, unsigned, old > value ? old : value)
ZT_ATOMIC(atomicMax, unsigned long long, old > value ? old : value)
ZT_ATOMIC(atomicMin, int, old < value ? old : value)
ZT_ATOMIC(atomicMin, unsigned, old < value ? old : value)
ZT_ATOMIC(atomicMin, unsigned long long, old < value ? old : value)
ZT_ATOMIC(atomicOr, int, old | value)
ZT_ATOMIC(atomicOr, unsigned, old | value)
ZT_ATOMIC(atomicExch, int, value)
ZT_ATOMIC(atomicExch, unsigned, value)
ZT_ATOMIC(atomicExch, float, value)
#undef ZT_ATOMIC
template <typename T>
T atomicCAS(T* address, T expected, T value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}

// Memory: hints and fences mean nothing here.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}
template <typename T>
void __stcg(T* address, T value) {
  *address = value;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap(ZtPlace where = ZtPlace::current()) {
  zt::emulation::fail_kernel("calls __trap", where);
}

// Bits.
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __uint_as_float(unsigned value) { return std::bit_cast<float>(value); }
inline float __int_as_float(int value) { return std::bit_cast<float>(value); }
inline int __popc(unsigned value) { return std::popcount(value); }
inline int __clz(int value) { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __ffs(int value) { return value == 0 ? 0 : std::countr_zero(static_cast<unsigned>(value)) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}

// Arithmetic. The fast names are exact here; macros, since libc has functions of its own by some of them.
#define __expf(x) std::exp(static_cast<float>(x))
#define __logf(x) std::log(static_cast<float>(x))
#define __sinf(x) std::sin(static_cast<float>(x))
#define __cosf(x) std::cos(static_cast<float>(x))
#define __powf(x, y) std::pow(static_cast<float>(x), static_cast<float>(y))
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float value) { return 1.0F / value; }
inline float __fsqrt_rn(float value) { return std::sqrt(value); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline int __float2int_rn(float value) { return static_cast<int>(std::nearbyint(value)); }
inline long long __double2ll_rn(double value) { return std::llrint(value); }
inline float __saturatef(float value) { return value > 0 ? (value < 1 ? value : 1.0F) : 0.0F; }
inline float zt_rsqrt(float value) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(value))); }
#define rsqrtf(x) zt_rsqrt(x)

#define ZT_MIN_MAX(type)                                       \
  constexpr type min(type a, type b) { return b < a ? b : a; } \
  constexpr type max(type a, type b) { return a < b ? b : a; }
ZT_MIN_MAX(int)
ZT_MIN_MAX(unsigned)
ZT_MIN_MAX(long)
ZT_MIN_MAX(unsigned long)
ZT_MIN_MAX(long long)
ZT_MIN_MAX(unsigned long long)
#undef ZT_MIN_MAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
