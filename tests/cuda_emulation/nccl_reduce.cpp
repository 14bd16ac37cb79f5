// Sums and the like over the ranks' chunks, in NCCL's types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "nccl_communicator.h"

namespace zt::emulation {
namespace {

// 16-bit formats compute in fp32 and round, the others in themselves (integers without sign, so that they may wrap).
template <typename T>
constexpr bool is_16_bit = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

template <typename T>
T combine(ncclRedOp_t op, T a, T b) {
  if constexpr (is_16_bit<T>) {
    return T(combine(op, static_cast<float>(a), static_cast<float>(b)));
  } else {
    switch (op) {
      case ncclProd: return static_cast<T>(a * b);
      case ncclMax: return std::max(a, b);
      case ncclMin: return std::min(a, b);
      default:
        if constexpr (std::is_integral_v<T>) {
          using Unsigned = std::make_unsigned_t<T>;
          return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
        } else {
          return a + b;
        }
    }
  }
}

template <typename T>
T before_average(T value, int ranks) {
  if constexpr (is_16_bit<T>) return T(static_cast<float>(value) * (1.0F / static_cast<float>(ranks)));
  if constexpr (std::is_floating_point_v<T>) return value * (T(1) / static_cast<T>(ranks));
  return value;
}

template <typename T>
T after_average(T value, int ranks) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(value / static_cast<T>(ranks));
  return value;
}

template <typename T>
void fold_as(ncclRedOp_t op, int first, int ranks, const Communicator& comm, std::size_t begin, std::size_t count,
             void* result) {
  const auto value_of = [&](int rank, std::size_t i) {
    const T value = reinterpret_cast<const T*>(comm.part(rank % ranks).chunk.data())[i];
    return op == ncclAvg ? before_average(value, ranks) : value;
  };
  for (std::size_t i = 0; i < count; ++i) {
    T sum = value_of(first, begin + i);
    for (int r = 1; r < ranks; ++r) sum = combine(op, sum, value_of(first + r, begin + i));
    static_cast<T*>(result)[i] = op == ncclAvg ? after_average(sum, ranks) : sum;
  }
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

void fold(ncclDataType_t type, ncclRedOp_t op, int first, int ranks, const Communicator& comm, std::size_t begin,
          std::size_t count, void* result) {
  const auto as = [&]<typename T>(T*) { fold_as<T>(op, first, ranks, comm, begin, count, result); };
  switch (type) {
    case ncclInt8: return as(static_cast<std::int8_t*>(nullptr));
    case ncclUint8: return as(static_cast<std::uint8_t*>(nullptr));
    case ncclInt32: return as(static_cast<std::int32_t*>(nullptr));
    case ncclUint32: return as(static_cast<std::uint32_t*>(nullptr));
    case ncclInt64: return as(static_cast<std::int64_t*>(nullptr));
    case ncclUint64: return as(static_cast<std::uint64_t*>(nullptr));
    case ncclFloat16: return as(static_cast<__half*>(nullptr));
    case ncclBfloat16: return as(static_cast<__nv_bfloat16*>(nullptr));
    case ncclFloat32: return as(static_cast<float*>(nullptr));
    case ncclFloat64: return as(static_cast<double*>(nullptr));
    default: return;
  }
}

}  // namespace zt::emulation
