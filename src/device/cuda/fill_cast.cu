// Fill and conversion.
#include <bit>

#include "core/dtype.h"
#include "device/cuda/any_format.h"

namespace zt::cuda {
namespace {

// Word: what holds the bits of an element.
template <typename Word>
struct FillBody {
  Word* out;
  Word bits;

  struct Nothing {};
  template <int N>
  __device__ __forceinline__ Nothing load(std::int64_t /*i*/) const {
    return {};
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, Nothing /*loaded*/) const {
    Elements<Word, N> elements;
#pragma unroll
    for (int e = 0; e < N; ++e) elements.values[e] = bits;
    store_elements(out + i, elements);
  }
};

struct CastBody {
  AnyTensor in, out;

  template <int N>
  __device__ __forceinline__ Bits<N> load(std::int64_t i) const {
    return in.load<N>(i);
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Bits<N>& loaded) const {
    out.store<N>(i, out.bits<N>(in.floats<N>(loaded)));
  }
};

template <typename Word>
void fill(const Fill& op, Word bits, const Launch& where) {
  constexpr int per_pack = elements_per_pack<Word>;
  for_elements<per_pack, 4>("fill", FillBody<Word>{static_cast<Word*>(op.out.data), bits}, op.out.count,
                            is_aligned(op.out.data), where);
}

}  // namespace

void run(const Fill& op, const Launch& where) {
  switch (op.out.dtype) {
    case DType::f32: return fill(op, std::bit_cast<std::uint32_t>(op.value), where);
    case DType::bf16: return fill(op, zt::from_float<bf16_t>(op.value).bits, where);
    case DType::f16: return fill(op, zt::from_float<f16_t>(op.value).bits, where);
  }
}

void run(const Cast& op, const Launch& where) {
  if (op.in.dtype != op.out.dtype) {
    for_elements<4, 4>("cast", CastBody{op.in, op.out}, op.out.count, can_pack<4>({op.in, op.out}), where);
  } else if (op.in.data != op.out.data && op.out.count > 0) {
    check(cudaMemcpyAsync(op.out.data, op.in.data, static_cast<std::size_t>(op.out.bytes()), cudaMemcpyDeviceToDevice,
                          where.stream),
          "cudaMemcpyAsync");
  }
}

}  // namespace zt::cuda
