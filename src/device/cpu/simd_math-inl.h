// Included once per instruction set: exponential, logarithm, cosine, tanh and the normal distribution on vectors of
// float. Written here rather than taken from Highway's contrib, whose exponential turns NaN into 0.
//
// The polynomials are near-minimax fits (Chebyshev interpolation of the named function on the named interval in
// 200-bit arithmetic, coefficients then rounded to float); the errors given are those of the fit.

#if defined(ZT_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_MATH_INL_H_
#undef ZT_SIMD_MATH_INL_H_
#else
#define ZT_SIMD_MATH_INL_H_
#endif

#include "device/cpu/simd_common-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE VF constant(float value) { return hn::Set(F32(), value); }

// The larger and the smaller of two; NaN in x stays NaN, NaN in the first argument does not matter otherwise.
// Highway leaves NaN open, so this counts on x86's instructions, which then return the second operand.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE VF at_least(VF low, VF x) { return hn::Max(low, x); }
HWY_INLINE VF at_most(VF high, VF x) { return hn::Min(high, x); }
#else
HWY_INLINE VF at_least(VF low, VF x) { return hn::IfThenElse(hn::Gt(low, x), low, x); }
HWY_INLINE VF at_most(VF high, VF x) { return hn::IfThenElse(hn::Lt(high, x), high, x); }
#endif

// Value in [low, high]; NaN stays NaN.
HWY_INLINE VF limited(VF x, float low, float high) { return at_most(constant(high), at_least(constant(low), x)); }

// c0 + c1 x + c2 x^2 + ...
template <typename... More>
HWY_INLINE VF polynomial(VF x, float c0, More... more) {
  if constexpr (sizeof...(More) == 0) {
    return constant(c0);
  } else {
    return hn::MulAdd(polynomial(x, more...), x, constant(c0));
  }
}

// e^x, error of about 1 ulp; 0 below -87.69 (where e^x leaves the normal numbers), infinity above 88.38 (where it
// comes within a factor 1.5 of the largest), NaN for NaN.
HWY_INLINE VF exp_of(VF x) {
  const F32 d;
  const U32 du;
  x = limited(x, -88.0F, 88.5F);
  // x = n ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, which then is in the lowest bits. ln 2 is
  // in two parts of which the first has 9 bits, so that n times it is exact.
  const VF magic = constant(12582912.0F);
  const VF shifted = hn::MulAdd(x, constant(1.44269504F), magic);
  const VF n = hn::Sub(shifted, magic);
  VF r = hn::NegMulAdd(n, constant(0.693359375F), x);
  r = hn::NegMulAdd(n, constant(-2.12194440e-4F), r);
  // (e^r - 1 - r) / r^2, error 6.6e-8 (8e-9 of e^r).
  const VF p = polynomial(r, 0.5F, 0.16666576666F, 0.04166655421F, 0.008363232884F, 0.001392625083F);
  const VF mantissa = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), constant(1.0F));
  // 2^n as a float: n + 127 in the exponent's place; 0 and infinity for n = -127 and 128.
  const VU power = hn::Add(hn::ShiftLeft<23>(hn::BitCast(du, shifted)), hn::Set(du, 0x3f800000U));
  return hn::Mul(mantissa, hn::BitCast(d, power));
}

// ln x for normal, positive x; error below 1 ulp but for x near 1, where it is below 1e-7 of x - 1.
HWY_INLINE VF log_of(VF x) {
  const F32 d;
  const U32 du;
  const I32 di;
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)).
  const VU sqrt_half = hn::Set(du, 0x3f3504f3U);
  const VU above = hn::Sub(hn::BitCast(du, x), sqrt_half);
  const VF n = hn::ConvertTo(d, hn::ShiftRight<23>(hn::BitCast(di, above)));
  const VF m = hn::BitCast(d, hn::Add(hn::And(above, hn::Set(du, 0x007fffffU)), sqrt_half));
  const VF f = hn::Sub(m, constant(1.0F));
  // (ln(1 + f) - f + f^2 / 2) / f^3, error 1.9e-7.
  const VF p = polynomial(f, 0.33333330728F, -0.25000306423F, 0.20001045094F, -0.16641281463F, 0.14214495924F,
                          -0.12998183764F, 0.12622319849F, -0.07902743772F);
  const VF square = hn::Mul(f, f);
  const VF tail = hn::MulAdd(hn::Mul(square, f), p, hn::Mul(square, constant(-0.5F)));
  const VF low = hn::MulAdd(n, constant(-2.12194440e-4F), tail);
  return hn::MulAdd(n, constant(0.693359375F), hn::Add(f, low));
}

// cos(2 pi u) for u in [0, 1], absolute error below 2e-7.
HWY_INLINE VF cos_of_turns(VF u) {
  const F32 d;
  const U32 du;
  // The nearest quarter turn q, and the angle past it in [-pi/4, pi/4]; u - q / 4 is exact.
  const VF magic = constant(12582912.0F);  // as in exp_of
  const VF shifted = hn::MulAdd(u, constant(4.0F), magic);
  const VF q = hn::Sub(shifted, magic);
  const VF angle = hn::Mul(hn::NegMulAdd(q, constant(0.25F), u), constant(6.28318531F));
  const VF square = hn::Mul(angle, angle);
  // (sin - x) / x^3 and (cos - 1 + x^2 / 2) / x^4, errors 2e-8 and 2e-9.
  const VF sin_tail = polynomial(square, -0.16666664662F, 0.00833274827F, -0.000195878909F);
  const VF sine = hn::MulAdd(hn::Mul(square, angle), sin_tail, angle);
  const VF cos_tail = polynomial(square, -0.5F, 0.0416666446595F, -0.0013888303036F, 2.4547942e-5F);
  const VF cosine = hn::MulAdd(square, cos_tail, constant(1.0F));
  // cos, -sin, -cos, sin for q = 0, 1, 2, 3.
  const VU quarter = hn::BitCast(du, shifted);
  const VU one = hn::Set(du, 1U);
  const auto is_sine = hn::RebindMask(d, hn::Eq(hn::And(quarter, one), one));
  const VU sign = hn::ShiftLeft<30>(hn::And(hn::Add(quarter, one), hn::Set(du, 2U)));
  return hn::Xor(hn::IfThenElse(is_sine, sine, cosine), hn::BitCast(d, sign));
}

// tanh x, error of 2 ulp.
HWY_INLINE VF tanh_of(VF x) {
  const VF magnitude = hn::Abs(x);
  const VF square = hn::Mul(x, x);
  // (tanh - x) / x^3 up to 0.625, error 4.4e-8.
  const VF p = polynomial(square, -0.33333328944F, 0.1333276974F, -0.05385090958F, 0.020997179F, -0.0060967141659F);
  const VF small = hn::MulAdd(hn::Mul(square, x), p, x);
  const VF one = constant(1.0F);
  const VF e = exp_of(hn::Add(magnitude, magnitude));
  const VF large = hn::CopySign(hn::Sub(one, hn::Div(constant(2.0F), hn::Add(e, one))), x);
  return hn::IfThenElse(hn::Lt(magnitude, constant(0.625F)), small, large);
}

// The standard normal distribution: density e^(-x^2 / 2) / sqrt(2 pi), and the probability below x, which is
// (1 + erf(x / sqrt 2)) / 2. For |x| < 1 it is 1/2 + x Q(x^2), Q fitted to (Phi(x) - 1/2) / x, error 1.6e-8. For
// x <= -1 it is e^(-x^2 / 2) t P(t) with t = 1 / (1 + 0.35 |x|) and P fitted to e^(x^2 / 2) Phi(-|x|) / t on
// |x| <= 15, relative error 4.1e-8; for x >= 1 one minus that. So the absolute error of erf is below 2e-7, roundings
// included, and small probabilities keep their relative precision.
struct Normal {
  VF density;
  VF probability;
};
HWY_INLINE Normal normal_at(VF x) {
  const VF one = constant(1.0F);
  const VF magnitude = hn::Abs(x);
  const VF e = exp_of(hn::Mul(hn::Mul(x, x), constant(-0.5F)));
  const VF t = hn::Div(one, hn::MulAdd(magnitude, constant(0.35F), one));
  const VF p = polynomial(t, 0.13961864287F, 0.13991480395F, 0.11941703607F, 0.107262773F, -0.02748288955F,
                          0.16580180153F, -0.26171266923F, 0.14695092217F, -0.0297704384966F);
  const VF tail = hn::Mul(e, hn::Mul(t, p));
  const VF outer = hn::IfThenElse(hn::Gt(x, hn::Zero(F32())), hn::Sub(one, tail), tail);
  const VF q =
      polynomial(hn::Mul(x, x), 0.3989422649F, -0.066489604F, 0.00996730151752F, -0.00116951927413F, 9.431737174e-5F);
  const VF inner = hn::MulAdd(x, q, constant(0.5F));
  return {hn::Mul(e, constant(0.398942280F)), hn::IfThenElse(hn::Lt(magnitude, one), inner, outer)};
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif
