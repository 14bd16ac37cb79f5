// Losses, fused with their gradients.
#include <cmath>
#include <limits>

#include "device/cpu/simd.h"
#include "device/cpu/simd_layout.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_loss.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <typename T>
void zero_range(T* out, std::int64_t n) {
  if (n > 0) std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(n) * sizeof(T));
}

// The largest element, NaN left out; -infinity for none.
template <typename T>
float largest(const T* row, std::int64_t n) {
  const F32 d;
  const VF lowest = constant(-infinity);
  VF a = lowest;
  VF b = lowest;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF x = load(d, row + i, extent);
    if constexpr (std::is_same_v<decltype(extent), Part>) {
      x = hn::IfThenElse(hn::FirstN(d, extent.count), x, lowest);
    }
    const VF next = at_least(x, a);  // NaN in x does not matter
    a = b;
    b = next;
  });
  HWY_ALIGN float lanes[hn::MaxLanes(d)];
  hn::Store(at_least(a, b), d, lanes);
  float result = -infinity;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) result = lanes[i] > result ? lanes[i] : result;
  return result;
}

// The sum of e^(x - shift), added up in double so that a probability near 1 leaves its small loss intact. Leaves the
// terms in `kept` if it is given.
template <typename T>
double sum_of_exponentials(const T* row, std::int64_t n, float shift, float* kept) {
  const F32 d;
  const hn::ScalableTag<double> d64;
  const hn::Rebind<float, decltype(d64)> half;
  constexpr std::size_t lanes = hn::MaxLanes(d64);
  constexpr std::size_t parts = hn::MaxLanes(d) / lanes;
  const VF shifts = constant(shift);
  hn::Vec<decltype(d64)> sums[parts];
  for (auto& sum : sums) sum = hn::Zero(d64);
  HWY_ALIGN float terms[hn::MaxLanes(d)];
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF e = exp_of(hn::Sub(load(d, row + i, extent), shifts));
    if (kept != nullptr) store(d, e, kept + i, extent);
    hn::Store(valid_or_zero(d, e, extent), d, terms);
    for (std::size_t k = 0; k < parts; ++k) {
      sums[k] = hn::Add(sums[k], hn::PromoteTo(d64, hn::Load(half, terms + k * lanes)));
    }
  });
  double total = 0.0;
  HWY_ALIGN double ends[lanes];
  for (const auto& sum : sums) {
    hn::Store(sum, d64, ends);
    for (const double end : ends) total += end;
  }
  return total;
}

template <typename T>
bool contains(const T* row, std::int64_t n, float value) {
  const F32 d;
  const VF values = constant(value);
  VF found = hn::Zero(d);
  const VF one = constant(1.0F);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF here = hn::IfThenElseZero(hn::Eq(load(d, row + i, extent), values), one);
    found = hn::Max(found, valid_or_zero(d, here, extent));
  });
  return hn::GetLane(hn::SumOfLanes(d, found)) != 0.0F;
}

template <typename T>
void cross_entropy_row(const CrossEntropy& op, std::int64_t row, float* exponentials) {
  const F32 d;
  const T* logits = op.logits.as<T>() + row * op.stride;
  T* d_logits = op.d_logits ? op.d_logits.as<T>() + row * op.stride : nullptr;
  const std::int64_t target = op.targets[row];
  if (target < 0) {
    op.losses[row] = 0.0F;
    if (op.correct != nullptr) op.correct[row] = 0;
    if (d_logits != nullptr) zero_range(d_logits, op.stride);
    return;
  }
  const float maximum = largest(logits, op.vocabulary);
  const double sum = sum_of_exponentials(logits, op.vocabulary, maximum, d_logits == nullptr ? nullptr : exponentials);
  const float target_logit = to_float(logits[target]);
  // Both terms are >= 0, so nothing cancels. Infinite and NaN logits pass through.
  const double distance = static_cast<double>(maximum) - static_cast<double>(target_logit);
  op.losses[row] = static_cast<float>(std::log(sum) + distance);
  if (op.correct != nullptr) {
    op.correct[row] = target_logit == maximum && !contains(logits, target, maximum) ? 1 : 0;
  }
  if (d_logits == nullptr) return;
  // The target's probability less one, in double.
  const double own = exponentials[target];
  const auto difference = static_cast<float>((own - sum) / sum);
  const VF factor = constant(static_cast<float>(static_cast<double>(op.scale) / sum));
  for_vectors(d, op.vocabulary, [&](std::int64_t i, auto extent) HWY_ATTR {
    store(d, hn::Mul(load(d, exponentials + i, extent), factor), d_logits + i, extent);
  });
  d_logits[target] = from_float<T>(difference * op.scale);
  zero_range(d_logits + op.vocabulary, op.stride - op.vocabulary);
}

void cross_entropy(const CrossEntropy& op, Context& context) {
  const std::int64_t per_task = rows_per_task(op.stride);
  context.pool.for_each(ceil_div(op.rows, per_task), [&](std::int64_t task, int worker) {
    auto* exponentials = reinterpret_cast<float*>(context.of(worker));
    const std::int64_t end = smaller(op.rows, (task + 1) * per_task);
    dispatch(op.logits.dtype, [&]<typename T>(T*) {
      for (std::int64_t row = task * per_task; row < end; ++row) cross_entropy_row<T>(op, row, exponentials);
    });
  });
}

template <typename T>
void squared_error_row(const SquaredError& op, std::int64_t row) {
  const F32 d;
  const T* prediction = op.prediction.as<T>() + row * op.columns;
  const float* targets = op.targets + row * op.columns;
  T* d_prediction = op.d_prediction ? op.d_prediction.as<T>() + row * op.columns : nullptr;
  if ((op.valid != nullptr && op.valid[row] == 0) || op.columns == 0) {
    op.losses[row] = 0.0F;
    if (d_prediction != nullptr) zero_range(d_prediction, op.columns);
    return;
  }
  const auto columns = static_cast<float>(op.columns);
  const VF factor = constant(2.0F / columns);
  const VF scale = constant(op.scale);
  RowSum squares;
  for_vectors(d, op.columns, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF difference = hn::Sub(load(d, prediction + i, extent), load(d, targets + i, extent));
    squares.add_product(difference, difference);
    if (d_prediction != nullptr) {
      store(d, hn::Mul(hn::Mul(difference, factor), scale), d_prediction + i, extent);
    }
  });
  op.losses[row] = squares.total() / columns;
}

void squared_error(const SquaredError& op, Context& context) {
  for_ranges(context, op.rows, rows_per_task(op.columns), [&](std::int64_t first, std::int64_t n) {
    dispatch(op.prediction.dtype, [&]<typename T>(T*) {
      for (std::int64_t row = first; row < first + n; ++row) squared_error_row<T>(op, row);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(cross_entropy);
HWY_EXPORT(squared_error);

// A row's exponentials, if there is a gradient to make of them.
WorkspaceNeed workspace_of(const CrossEntropy& op) {
  const std::int64_t bytes = partial_stride(op.vocabulary) * static_cast<std::int64_t>(sizeof(float));
  return {.per_worker = op.d_logits.count != 0 ? bytes : 0, .shared = 0};
}
void run(const CrossEntropy& op, Context& context) { HWY_DYNAMIC_DISPATCH(cross_entropy)(op, context); }

WorkspaceNeed workspace_of(const SquaredError&) { return {}; }
void run(const SquaredError& op, Context& context) { HWY_DYNAMIC_DISPATCH(squared_error)(op, context); }

}  // namespace zt::cpu
#endif
