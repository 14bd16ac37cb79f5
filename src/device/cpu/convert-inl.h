// Vectors of 16-bit numbers to fp32 and back, agreeing with core/dtype.h to the bit. Included once per Highway target.
#if defined(ZEROTRAIN_CPU_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ZEROTRAIN_CPU_CONVERT_INL_H
#undef ZEROTRAIN_CPU_CONVERT_INL_H
#else
#define ZEROTRAIN_CPU_CONVERT_INL_H
#endif

#include "core/dtype.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu::panels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Targets whose fp16 conversions are the processor's own; elsewhere Highway emulates them without infinities.
#if HWY_TARGET == HWY_AVX2 || (HWY_TARGET < HWY_AVX2 && HWY_ARCH_X86)
constexpr bool converts_f16 = true;
#else
constexpr bool converts_f16 = false;
#endif

using Floats = hn::ScalableTag<float>;
using Words = hn::Rebind<std::uint32_t, Floats>;
using Halves = hn::Rebind<std::uint16_t, Floats>;  // as many as Floats

// Loads Lanes(Floats) numbers, unaligned.
HWY_INLINE hn::Vec<Floats> load(const float* in) { return hn::LoadU(Floats(), in); }
HWY_INLINE hn::Vec<Floats> load(const bf16_t* in) {
  const auto bits = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(in));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits)));
}
HWY_INLINE hn::Vec<Floats> load(const f16_t* in) {
  const Floats floats;
  if constexpr (converts_f16) {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    return hn::PromoteTo(floats, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(in)));
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(floats)];
    for (std::size_t i = 0; i < hn::Lanes(floats); ++i) lanes[i] = to_float(in[i]);
    return hn::Load(floats, lanes);
  }
}

HWY_INLINE void store(hn::Vec<Floats> value, float* out) { hn::StoreU(value, Floats(), out); }
HWY_INLINE void store(hn::Vec<Floats> value, bf16_t* out) {
  const Words words;
  const auto bits = hn::BitCast(words, value);
  const auto upper = hn::ShiftRight<16>(bits);
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(words, 0x7fffU), hn::And(upper, hn::Set(words, 1U)))));
  const auto is_number = hn::RebindMask(words, hn::Eq(value, value));
  const auto result = hn::IfThenElse(is_number, rounded, hn::Or(upper, hn::Set(words, 0x40U)));
  // All values are below 2^16, so the saturating demotion keeps them.
  const auto halves = hn::DemoteTo(Halves(), hn::BitCast(hn::RebindToSigned<Words>(), result));
  hn::StoreU(halves, Halves(), reinterpret_cast<std::uint16_t*>(out));
}
HWY_INLINE void store(hn::Vec<Floats> value, f16_t* out) {
  const Floats floats;
  if constexpr (converts_f16) {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    hn::StoreU(hn::DemoteTo(halves, value), halves, reinterpret_cast<hwy::float16_t*>(out));
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(floats)];
    hn::Store(value, floats, lanes);
    for (std::size_t i = 0; i < hn::Lanes(floats); ++i) out[i] = from_float<f16_t>(lanes[i]);
  }
}

// `value` rounded to T and back.
HWY_INLINE hn::Vec<Floats> round_to(hn::Vec<Floats> value, const float*) { return value; }
template <typename T>
HWY_INLINE hn::Vec<Floats> round_to(hn::Vec<Floats> value, const T*) {
  HWY_ALIGN T lanes[hn::MaxLanes(Floats())];
  store(value, lanes);
  return load(lanes);
}

}  // namespace zt::cpu::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
