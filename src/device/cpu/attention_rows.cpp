#include "device/cpu/attention_rows.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/attention_rows.cpp"
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
HWY_INLINE void store_rounded(VF value, Stored* out) {
  const F32 d;
  if constexpr (std::is_same_v<Rounded, Stored>) {
    store(d, value, out);
  } else {
    store(d, rounded<Rounded>(d, value), out);
  }
}

// Zeros in the vectors at first, first + N, ... below end.
template <typename Stored>
HWY_INLINE void zero_vectors(Stored* out, std::int64_t first, std::int64_t end) {
  const F32 d;
  for (; first < end; first += static_cast<std::int64_t>(hn::Lanes(d))) store(d, hn::Zero(d), out + first);
}

// Calls body(i, Whole or Part) for the vectors with elements below `valid`, which are whole in memory; before those of
// a piece, the random words of whole vectors are drawn.
template <class Body>
HWY_INLINE void for_row(Dropper& dropper, std::int64_t first_element, std::int64_t valid, const Body& body) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for_pieces(valid, [&](std::int64_t offset, std::int64_t n) HWY_ATTR {
    if (dropper.active()) dropper.fill(first_element + offset, ceil_div(n, lanes) * lanes);
    for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR { body(offset + i, i, extent); });
  });
}

template <typename Rounded, typename Stored>
float softmax_of_row(float* scores, Stored* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                     const Dropout& dropout, std::int64_t first_element) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t last = (valid - 1) / lanes * lanes;  // start of the last vector with valid elements
  const auto in_last = hn::FirstN(d, static_cast<std::size_t>(valid - last));
  const VF lowest = constant(-std::numeric_limits<float>::infinity());
  store(d, hn::IfThenElse(in_last, load(d, scores + last), lowest), scores + last);

  VF largest = lowest;
  for (std::int64_t i = 0; i <= last; i += lanes) largest = hn::Max(largest, load(d, scores + i));
  const float shift = hn::GetLane(hn::MaxOfLanes(d, largest)) * scale;

  const VF factor = constant(scale);
  const VF shifts = constant(shift);
  RowSum sums;
  for (std::int64_t i = 0; i <= last; i += lanes) {
    const VF e = exp_of(hn::MulSub(load(d, scores + i), factor, shifts));
    sums.add(e);
    store(d, e, scores + i);
  }
  const float sum = sums.total();

  Dropper dropper(dropout);
  const bool drops = dropper.active();
  const VF inverse = constant(1.0F / sum);
  for_row(dropper, first_element, last + lanes, [&](std::int64_t i, std::int64_t in_piece, auto) HWY_ATTR {
    VF p = hn::Mul(load(d, scores + i), inverse);
    if (drops) p = dropper.apply(in_piece, p);
    store_rounded<Rounded>(p, probabilities + i);
  });
  zero_vectors(probabilities, last + lanes, columns);
  return shift + std::log(sum);
}

template <typename Rounded, typename Stored>
void softmax_backward_of_row(float* scores, float* d_probabilities, Stored* probabilities, Stored* d_scores,
                             std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp, float product,
                             const Dropout& dropout, std::int64_t first_element) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  Dropper dropper(dropout);
  const bool drops = dropper.active();
  const VF factor = constant(scale);
  const VF shift = constant(log_sum_exp);
  const VF products = constant(product);
  for_row(dropper, first_element, valid, [&](std::int64_t i, std::int64_t in_piece, auto extent) HWY_ATTR {
    const VF p = valid_or_zero(d, exp_of(hn::MulSub(load(d, scores + i), factor, shift)), extent);
    VF dp = load(d, d_probabilities + i);
    VF kept = p;
    if (drops) {
      dp = dropper.apply(in_piece, dp);
      kept = dropper.apply(in_piece, p);
    }
    store_rounded<Rounded>(kept, probabilities + i);
    const VF gradient = hn::Mul(hn::Mul(p, hn::Sub(dp, products)), factor);
    store(d, valid_or_zero(d, gradient, extent), d_scores + i);
  });
  const std::int64_t end = ceil_div(valid, lanes) * lanes;
  zero_vectors(probabilities, end, columns);
  zero_vectors(d_scores, end, columns);
}

float softmax_row_on_target(float* scores, void* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                            RowFormat format, const Dropout& dropout, std::int64_t first_element) {
  float result = 0.0F;
  with_format(format, [&]<typename Rounded, typename Stored>(Rounded*, Stored*) {
    result = softmax_of_row<Rounded>(scores, static_cast<Stored*>(probabilities), valid, columns, scale, dropout,
                                     first_element);
  });
  return result;
}

void softmax_row_backward_on_target(float* scores, float* d_probabilities, void* probabilities, void* d_scores,
                                    std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp,
                                    float product, RowFormat format, const Dropout& dropout,
                                    std::int64_t first_element) {
  with_format(format, [&]<typename Rounded, typename Stored>(Rounded*, Stored*) {
    softmax_backward_of_row<Rounded>(scores, d_probabilities, static_cast<Stored*>(probabilities),
                                     static_cast<Stored*>(d_scores), valid, columns, scale, log_sum_exp, product,
                                     dropout, first_element);
  });
}

template <typename T>
float dot_of_rows(const T* a, const T* b, std::int64_t count) {
  const F32 d;
  RowSum sums;
  for_vectors(d, count, [&](std::int64_t i, auto extent) HWY_ATTR {
    sums.add_product(load(d, a + i, extent), load(d, b + i, extent));
  });
  return sums.total();
}

float dot_row_on_target(DType dtype, const void* a, const void* b, std::int64_t count) {
  return dispatch(
      dtype, [&]<typename T>(T*) { return dot_of_rows(static_cast<const T*>(a), static_cast<const T*>(b), count); });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(softmax_row_on_target);
HWY_EXPORT(softmax_row_backward_on_target);
HWY_EXPORT(dot_row_on_target);

float softmax_row(float* scores, void* probabilities, std::int64_t valid, std::int64_t columns, float scale,
                  RowFormat format, const Dropout& dropout, std::int64_t first_element) {
  return HWY_DYNAMIC_DISPATCH(softmax_row_on_target)(scores, probabilities, valid, columns, scale, format, dropout,
                                                     first_element);
}

void softmax_row_backward(float* scores, float* d_probabilities, void* probabilities, void* d_scores,
                          std::int64_t valid, std::int64_t columns, float scale, float log_sum_exp, float product,
                          RowFormat format, const Dropout& dropout, std::int64_t first_element) {
  HWY_DYNAMIC_DISPATCH(softmax_row_backward_on_target)
  (scores, d_probabilities, probabilities, d_scores, valid, columns, scale, log_sum_exp, product, format, dropout,
   first_element);
}

float dot_row(DType dtype, const void* a, const void* b, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_row_on_target)(dtype, a, b, count);
}

}  // namespace zt::cpu
#endif
