#include "device/cpu/attention_rows.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/random.h"

// The baseline, AVX2 and AVX-512 (Highway's AVX3) are enough.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (0xFFLL | (1LL << 11) | (1LL << 12))
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "device/cpu/convert-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu::panels::HWY_NAMESPACE {

using V = hn::Vec<Floats>;

constexpr float lowest_exponent = -87.0F;  // e^x is a normal number from here on

// e^x for x up to about 88, 0 below lowest_exponent, NaN for NaN. x = n ln 2 + r with |r| <= ln(2) / 2; the Taylor
// polynomial of degree 7 errs by at most r^8 / 8! = 5e-9.
HWY_INLINE V exponential(V x) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto too_low = hn::Lt(x, hn::Set(d, lowest_exponent));
  x = hn::IfThenElse(too_low, hn::Set(d, lowest_exponent), x);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125F), x);  // the upper bits of ln 2: n times it is exact
  r = hn::NegMulAdd(n, hn::Set(d, 1.42860677e-6F), r);
  V p = hn::Set(d, 1.0F / 5040.0F);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 720.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 120.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 24.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F / 6.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0F));
  // 2^n by adding n to the exponent.
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, n));
  const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  const V result = hn::IfThenElse(hn::Eq(x, x), scaled, x);
  return hn::IfThenElse(too_low, hn::Zero(d), result);
}

// The random words of the indices first_index ... first_index + count - 1; returns where the first of them is.
// words: count + 64 of them.
inline const std::uint32_t* random_words(std::uint64_t key, std::uint64_t first_index, std::int64_t count,
                                         std::uint32_t* words) {
  const auto skipped = static_cast<std::int64_t>(first_index % 4);
  std::uint64_t block = first_index / 4;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  // One block of four words in each 64-bit lane; a word lies in the lower half of its lane, what is in the upper half
  // does not matter to MulEven.
  const hn::ScalableTag<std::uint64_t> d;
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  const auto times = [&](auto x, std::uint32_t factor)
                         HWY_ATTR { return hn::MulEven(hn::BitCast(d32, x), hn::Set(d32, factor)); };
  const auto lower_half = hn::Set(d, std::uint64_t{0xffffffffU});
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t at = 0; at < skipped + count; at += 4 * lanes) {
    auto x0 = hn::Iota(d, block);
    auto x1 = hn::ShiftRight<32>(x0);
    auto x2 = hn::Zero(d);
    auto x3 = hn::Zero(d);
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto p0 = times(x0, 0xD2511F53U);
      const auto p1 = times(x2, 0xCD9E8D57U);
      x0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), x1), hn::Set(d, std::uint64_t{k0}));
      x2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), x3), hn::Set(d, std::uint64_t{k1}));
      x1 = p1;
      x3 = p0;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    const auto words01 = hn::Or(hn::And(x0, lower_half), hn::ShiftLeft<32>(x1));
    const auto words23 = hn::Or(hn::And(x2, lower_half), hn::ShiftLeft<32>(x3));
    HWY_ALIGN std::uint64_t pairs[2 * hn::MaxLanes(d)];
    hn::StoreInterleaved2(words01, words23, d, pairs);
    std::memcpy(words + at, pairs, sizeof(std::uint64_t) * 2 * hn::Lanes(d));
    block += static_cast<std::uint64_t>(lanes);
  }
#else
  for (std::int64_t at = 0; at < skipped + count; at += 4) {
    const auto four = philox(key, block++);
    std::memcpy(words + at, four.data(), sizeof four);
  }
#endif
  return words + skipped;
}

// Drops elements out; without dropout does nothing.
class RowDropper {
 public:
  RowDropper(const RowDropout& dropout, std::int64_t count, std::uint32_t* words)
      : probability_(dropout.probability), scale_(1.0F / (1.0F - dropout.probability)) {
    if (probability_ > 0.0F) words_ = random_words(dropout.key, dropout.first_index, count, words);
  }

  HWY_INLINE V apply(V value, std::int64_t at) const {
    if (words_ == nullptr) return value;
    const Floats d;
    const Words dw;
    const auto bits = hn::ShiftRight<8>(hn::LoadU(dw, words_ + at));
    const V uniform = hn::Mul(hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<Floats>(), bits)), hn::Set(d, 0x1p-24F));
    const auto dropped = hn::Lt(uniform, hn::Set(d, probability_));
    return hn::IfThenElse(dropped, hn::Zero(d), hn::Mul(value, hn::Set(d, scale_)));
  }

 private:
  float probability_, scale_;
  const std::uint32_t* words_ = nullptr;
};

// Calls f with typed null pointers for what P is rounded to and what it is stored as.
template <typename F>
HWY_INLINE void with_format(RowFormat format, const F& f) {
  dispatch(format.rounded, [&]<typename Rounded>(Rounded* rounded) {
    if (format.stored == format.rounded) {
      f(rounded, rounded);
    } else {
      f(rounded, static_cast<float*>(nullptr));
    }
  });
}

template <typename Rounded, typename Stored>
HWY_INLINE void store_rounded(V value, Stored* out) {
  if constexpr (std::is_same_v<Rounded, Stored>) {
    store(value, out);
  } else {
    store(round_to(value, static_cast<const Rounded*>(nullptr)), out);
  }
}

template <typename Rounded, typename Stored>
float softmax(float* scores, Stored* probabilities, std::int64_t valid, std::int64_t columns, float scale,
              const RowDropout& dropout, std::uint32_t* words) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t last = (valid - 1) / lanes * lanes;  // start of the last vector with valid elements
  const auto in_last = hn::FirstN(d, static_cast<std::size_t>(valid - last));
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  hn::StoreU(hn::IfThenElse(in_last, load(scores + last), lowest), d, scores + last);

  V largest = lowest;
  for (std::int64_t i = 0; i <= last; i += lanes) largest = hn::Max(largest, load(scores + i));
  const float shift = hn::GetLane(hn::MaxOfLanes(d, largest)) * scale;

  const V factor = hn::Set(d, scale), shifts = hn::Set(d, shift);
  V sums = hn::Zero(d);
  for (std::int64_t i = 0; i <= last; i += lanes) {
    const V e = exponential(hn::MulSub(load(scores + i), factor, shifts));
    sums = hn::Add(sums, e);
    store(e, scores + i);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(d, sums));

  const RowDropper dropper(dropout, last + lanes, words);
  const V inverse = hn::Set(d, 1.0F / sum);
  for (std::int64_t i = 0; i <= last; i += lanes) {
    store_rounded<Rounded>(dropper.apply(hn::Mul(load(scores + i), inverse), i), probabilities + i);
  }
  for (std::int64_t i = last + lanes; i < columns; i += lanes) store(hn::Zero(d), probabilities + i);
  return shift + std::log(sum);
}

template <typename Rounded, typename Stored>
void softmax_backward(float* scores, float* d_probabilities, Stored* probabilities, Stored* d_scores,
                      std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp, float product,
                      const RowDropout& dropout, std::uint32_t* words) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const RowDropper dropper(dropout, columns, words);
  const V factor = hn::Set(d, scale), shift = hn::Set(d, log_sum_exp), products = hn::Set(d, product);
  std::int64_t i = 0;
  const auto step = [&](auto keep) HWY_ATTR {
    const V p = keep(exponential(hn::MulSub(load(scores + i), factor, shift)));
    const V dp = dropper.apply(load(d_probabilities + i), i);
    store_rounded<Rounded>(dropper.apply(p, i), probabilities + i);
    store(keep(hn::Mul(hn::Mul(p, hn::Sub(dp, products)), factor)), d_scores + i);
  };
  for (; i + lanes <= valid; i += lanes) step([](V value) HWY_ATTR { return value; });
  if (i < valid) {
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(valid - i));
    step([&](V value) HWY_ATTR { return hn::IfThenElseZero(mask, value); });
    i += lanes;
  }
  for (; i < columns; i += lanes) {
    store(hn::Zero(d), probabilities + i);
    store(hn::Zero(d), d_scores + i);
  }
}

float softmax_row_on_target(float* scores, void* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                            RowFormat format, const RowDropout& dropout, std::uint32_t* words) {
  float result = 0.0F;
  with_format(format, [&]<typename Rounded, typename Stored>(Rounded*, Stored*) {
    result = softmax<Rounded>(scores, static_cast<Stored*>(probabilities), valid, columns, scale, dropout, words);
  });
  return result;
}

void softmax_row_backward_on_target(float* scores, float* d_probabilities, void* probabilities, void* d_scores,
                                    std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp,
                                    float product, RowFormat format, const RowDropout& dropout, std::uint32_t* words) {
  with_format(format, [&]<typename Rounded, typename Stored>(Rounded*, Stored*) {
    softmax_backward<Rounded>(scores, d_probabilities, static_cast<Stored*>(probabilities),
                              static_cast<Stored*>(d_scores), valid, columns, scale, log_sum_exp, product, dropout,
                              words);
  });
}

template <typename T>
float dot(const T* a, const T* b, std::int64_t count) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) sums = hn::MulAdd(load(a + i), load(b + i), sums);
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) sum += to_float(a[i]) * to_float(b[i]);
  return sum;
}

float dot_row_on_target(DType dtype, const void* a, const void* b, std::int64_t count) {
  return dispatch(dtype,
                  [&]<typename T>(T*) { return dot(static_cast<const T*>(a), static_cast<const T*>(b), count); });
}

}  // namespace zt::cpu::panels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {
namespace panels {
HWY_EXPORT(softmax_row_on_target);
HWY_EXPORT(softmax_row_backward_on_target);
HWY_EXPORT(dot_row_on_target);
}  // namespace panels

float softmax_row(float* scores, void* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                  RowFormat format, const RowDropout& dropout, std::uint32_t* words) {
  using namespace panels;
  return HWY_DYNAMIC_DISPATCH(softmax_row_on_target)(scores, probabilities, valid, columns, scale, format, dropout,
                                                     words);
}

void softmax_row_backward(float* scores, float* d_probabilities, void* probabilities, void* d_scores,
                          std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp, float product,
                          RowFormat format, const RowDropout& dropout, std::uint32_t* words) {
  using namespace panels;
  HWY_DYNAMIC_DISPATCH(softmax_row_backward_on_target)
  (scores, d_probabilities, probabilities, d_scores, valid, columns, scale, log_sum_exp, product, format, dropout,
   words);
}

float dot_row(DType dtype, const void* a, const void* b, std::int64_t count) {
  using namespace panels;
  return HWY_DYNAMIC_DISPATCH(dot_row_on_target)(dtype, a, b, count);
}

}  // namespace zt::cpu
#endif
