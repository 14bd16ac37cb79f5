// Initial values and dropout.
#include "device/cuda/any_format.h"
#include "device/cuda/random_words.h"

namespace zt::cuda {
namespace {

// The logarithm and the cosine of the CPU's normal numbers (device/cpu/simd_math-inl.h, where the fits are described),
// step by step, so that a model starts from the same weights on either device.

// ln x for normal, positive x; error below 1 ulp but for x near 1, where it is below 1e-7 of x - 1.
__device__ __forceinline__ float log_of(float x) {
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  constexpr unsigned sqrt_half = 0x3f3504f3U;
  const unsigned above = __float_as_uint(x) - sqrt_half;
  const auto n = static_cast<float>(static_cast<int>(above) >> 23);
  const float f = __fsub_rn(__uint_as_float((above & 0x007fffffU) + sqrt_half), 1.0F);
  float p = -0.07902743772F;
  p = __fmaf_rn(p, f, 0.12622319849F);
  p = __fmaf_rn(p, f, -0.12998183764F);
  p = __fmaf_rn(p, f, 0.14214495924F);
  p = __fmaf_rn(p, f, -0.16641281463F);
  p = __fmaf_rn(p, f, 0.20001045094F);
  p = __fmaf_rn(p, f, -0.25000306423F);
  p = __fmaf_rn(p, f, 0.33333330728F);
  const float square = __fmul_rn(f, f);
  const float tail = __fmaf_rn(__fmul_rn(square, f), p, __fmul_rn(square, -0.5F));
  const float low = __fmaf_rn(n, -2.12194440e-4F, tail);
  return __fmaf_rn(n, 0.693359375F, __fadd_rn(f, low));
}

// cos(2 pi u) for u in [0, 1], absolute error below 2e-7.
__device__ __forceinline__ float cos_of_turns(float u) {
  // Adding 1.5 * 2^23 rounds to the nearest quarter turn, whose number then is in the lowest bits.
  constexpr float magic = 12582912.0F;
  const float shifted = __fmaf_rn(u, 4.0F, magic);
  const float angle = __fmul_rn(__fmaf_rn(-__fsub_rn(shifted, magic), 0.25F, u), 6.28318531F);
  const float square = __fmul_rn(angle, angle);
  float sin_tail = __fmaf_rn(-0.000195878909F, square, 0.00833274827F);
  sin_tail = __fmaf_rn(sin_tail, square, -0.16666664662F);
  const float sine = __fmaf_rn(__fmul_rn(square, angle), sin_tail, angle);
  float cos_tail = __fmaf_rn(2.4547942e-5F, square, -0.0013888303036F);
  cos_tail = __fmaf_rn(cos_tail, square, 0.0416666446595F);
  cos_tail = __fmaf_rn(cos_tail, square, -0.5F);
  const float cosine = __fmaf_rn(square, cos_tail, 1.0F);
  // cos, -sin, -cos, sin for quarters 0, 1, 2, 3.
  const unsigned quarter = __float_as_uint(shifted);
  const unsigned sign = ((quarter + 1U) & 2U) << 30;
  return __uint_as_float(__float_as_uint((quarter & 1U) != 0 ? sine : cosine) ^ sign);
}

// Box and Muller 1958.
__device__ __forceinline__ float normal_of(std::uint32_t bits1, std::uint32_t bits2) {
  const float radius = __fsqrt_rn(__fmul_rn(-2.0F, log_of(__fsub_rn(1.0F, uniform_of(bits1)))));
  return __fmul_rn(radius, cos_of_turns(uniform_of(bits2)));
}

template <Distribution distribution>
struct InitializeBody {
  AnyTensor out;
  std::uint64_t key;
  std::uint64_t first_element;
  float scale;

  struct Nothing {};
  template <int N>
  __device__ __forceinline__ Nothing load(std::int64_t /*i*/) const {
    return {};
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, Nothing /*loaded*/) const {
    const std::uint64_t first = first_element + static_cast<std::uint64_t>(i);
    Floats<N> floats;
    if constexpr (distribution == Distribution::uniform) {
      const RandomWords<N> bits = random_words<N>(key, first);
#pragma unroll
      for (int e = 0; e < N; ++e) {
        const float u = uniform_of(bits.words[e]);
        floats.values[e] = __fmul_rn(__fsub_rn(__fadd_rn(u, u), 1.0F), scale);
      }
    } else {
#pragma unroll
      for (int e = 0; e < N; ++e) {
        // 2 i and 2 i + 1 lie in one block.
        const std::uint64_t index = 2 * (first + static_cast<std::uint64_t>(e));
        const RandomBlock block = random_block(key, index / 4);
        const bool upper = index % 4 != 0;
        const std::uint32_t bits1 = upper ? block.words[2] : block.words[0];
        const std::uint32_t bits2 = upper ? block.words[3] : block.words[1];
        floats.values[e] = __fmul_rn(normal_of(bits1, bits2), scale);
      }
    }
    out.store<N>(i, out.bits<N>(floats));
  }
};

template <Distribution distribution>
void initialize(const Initialize& op, const Launch& where) {
  const InitializeBody<distribution> body{op.out, op.key, static_cast<std::uint64_t>(op.first_element), op.scale};
  for_elements<4, 1>("initialize", body, op.out.count, can_pack<4>({op.out}), where);
}

template <typename T>
struct DropoutBody {
  const T* in;
  T* out;
  std::uint64_t key;
  std::uint64_t first;  // index of element 0
  float probability;

  template <int N>
  __device__ __forceinline__ Elements<T, N> load(std::int64_t i) const {
    return load_elements<N>(in + i);
  }
  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, Elements<T, N> elements) const {
    const float scale = __fdiv_rn(1.0F, __fsub_rn(1.0F, probability));
    const RandomWords<N> bits = random_words<N>(key, first + static_cast<std::uint64_t>(i));
#pragma unroll
    for (int e = 0; e < N; ++e) {
      const float kept = __fmul_rn(to_float(elements.values[e]), scale);
      elements.values[e] = from_float<T>(uniform_of(bits.words[e]) < probability ? 0.0F : kept);
    }
    store_elements(out + i, elements);
  }
};

}  // namespace

void run(const Initialize& op, const Launch& where) {
  switch (op.distribution) {
    case Distribution::normal: return initialize<Distribution::normal>(op, where);
    case Distribution::uniform: return initialize<Distribution::uniform>(op, where);
    case Distribution::constant: return run(Fill{.out = op.out, .value = op.scale}, where);
  }
}

void run(const DropoutForward& op, const Launch& where) {
  const Dropout& dropout = op.dropout;
  if (dropout.probability == 0.0F) return run(Cast{.in = op.in, .out = op.out}, where);
  const auto first =
      static_cast<std::uint64_t>(dropout.first_sample) * static_cast<std::uint64_t>(dropout.elements_per_sample);
  by_type(op.out.dtype, [&]<typename T>(T*) {
    const DropoutBody<T> body{pointer<T>(op.in), pointer<T>(op.out), dropout.key, first, dropout.probability};
    for_elements<elements_per_pack<T>, 2>("dropout", body, op.out.count,
                                          is_aligned(op.in.data) && is_aligned(op.out.data), where);
  });
}

}  // namespace zt::cuda
