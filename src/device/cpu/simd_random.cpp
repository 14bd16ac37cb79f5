// Initial values and dropout.
#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_random.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_math-inl.h"
#include "device/cpu/simd_philox-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// n elements of random bits -> scale * uniform in [-1, 1).
void uniform_piece(const Initialize& op, const PhiloxKeys& keys, std::int64_t first, std::int64_t n, RandomWords& words,
                   float* out) {
  const F32 d;
  words.fill(keys, static_cast<std::uint64_t>(op.first_element + first), n);
  const std::uint32_t* bits = words.begin();
  for_vectors(d, n, [&](std::int64_t i, auto) HWY_ATTR {
    const VF u = uniform_of(hn::LoadU(U32(), bits + i));
    const VF signed_u = hn::Sub(hn::Add(u, u), constant(1.0F));
    hn::StoreU(hn::Mul(signed_u, constant(op.scale)), d, out + i);
  });
}

// Box and Muller 1958: sqrt(-2 ln(1 - u1)) cos(2 pi u2) of the uniform numbers of indices 2 i and 2 i + 1.
void normal_piece(const Initialize& op, const PhiloxKeys& keys, std::int64_t first, std::int64_t n, RandomWords& words,
                  float* out) {
  const F32 d;
  words.fill(keys, 2 * static_cast<std::uint64_t>(op.first_element + first), 2 * n);
  const std::uint32_t* bits = words.begin();
  for_vectors(d, n, [&](std::int64_t i, auto) HWY_ATTR {
    VU bits1;
    VU bits2;
    hn::LoadInterleaved2(U32(), bits + 2 * i, bits1, bits2);
    const VF log_u = log_of(hn::Sub(constant(1.0F), uniform_of(bits1)));
    const VF radius = hn::Sqrt(hn::Mul(constant(-2.0F), log_u));
    const VF normal = hn::Mul(radius, cos_of_turns(uniform_of(bits2)));
    hn::StoreU(hn::Mul(normal, constant(op.scale)), d, out + i);
  });
}

void initialize(const Initialize& op, Context& context) {
  const PhiloxKeys keys(op.key);
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t begin, std::int64_t count) {
    RandomWords words;
    float values[piece + 64];  // whole vectors are computed
    for_pieces(count, [&](std::int64_t offset, std::int64_t n) {
      const std::int64_t first = begin + offset;
      if (op.distribution == Distribution::normal) {
        normal_piece(op, keys, first, n, words, values);
      } else {
        uniform_piece(op, keys, first, n, words, values);
      }
      store_floats(values, op.out, first, n, false);
    });
  });
}

template <typename T>
void dropout_range(Dropper& dropper, const T* in, T* out, std::int64_t first, std::int64_t count) {
  const F32 d;
  for_pieces(count, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
    const std::int64_t at = first + offset;
    dropper.fill(at, n);
    for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
      store(d, dropper.apply(i, load(d, in + at + i, extent)), out + at + i, extent);
    });
  });
}

void dropout(const DropoutForward& op, Context& context) {
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t first, std::int64_t count) {
    Dropper dropper(op.dropout);
    dispatch(op.out.dtype,
             [&]<typename T>(T*) { dropout_range(dropper, op.in.as<T>(), op.out.as<T>(), first, count); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(initialize);
HWY_EXPORT(dropout);

WorkspaceNeed workspace_of(const Initialize&) { return {}; }
void run(const Initialize& op, Context& context) {
  if (op.distribution == Distribution::constant) {
    run(Fill{.out = op.out, .value = op.scale}, context);
  } else {
    HWY_DYNAMIC_DISPATCH(initialize)(op, context);
  }
}

WorkspaceNeed workspace_of(const DropoutForward&) { return {}; }
void run(const DropoutForward& op, Context& context) {
  if (op.dropout.probability == 0.0F) {
    run(Cast{.in = op.in, .out = op.out}, context);
  } else {
    HWY_DYNAMIC_DISPATCH(dropout)(op, context);
  }
}

}  // namespace zt::cpu
#endif
