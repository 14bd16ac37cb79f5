// Muon's own operations, which lie around its products of matrices. Additions and multiplications are rounded one by
// one, as in simd_optimizer.cpp.
#include <cmath>

#include "core/exact_sum.h"
#include "device/cpu/as_decided.h"
#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_muon.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "device/cpu/simd_optimizer_pass-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

struct MuonMean : MuonDirectionPass {
  explicit MuonMean(const MuonDirection& op)
      : nesterov(op.nesterov), one_minus_beta(hn::Set(F32(), op.one_minus_beta)) {}

  HWY_INLINE void operator()(VF g, VF& m, VF* s) const {
    m = hn::Add(m, hn::Mul(hn::Sub(g, m), one_minus_beta));
    s[0] = nesterov ? hn::Sub(m, hn::Mul(hn::Sub(m, g), one_minus_beta)) : m;
  }

  bool nesterov;
  VF one_minus_beta;
};

struct MuonMove : MuonUpdatePass {
  explicit MuonMove(const MuonUpdate& op)
      : shrink(hn::Set(F32(), 1.0F - op.learning_rate * op.weight_decay)),
        learning_rate(hn::Set(F32(), op.learning_rate)),
        scale(hn::Set(F32(), op.scale)) {}

  HWY_INLINE void operator()(VF direction, VF& p, VF* /*s*/) const {
    p = hn::Mul(p, shrink);
    p = hn::Sub(p, hn::Mul(learning_rate, hn::Mul(scale, direction)));
  }

  VF shrink, learning_rate, scale;
};

void muon_direction(const MuonDirection& op, Context& context) {
  update(MuonMean(op), op.factor, op.gradient, op.momentum, {}, {op.direction}, context);
}

void muon_update(const MuonUpdate& op, Context& context) {
  update(MuonMove(op), 1.0F, op.direction, op.parameter, op.published, {}, context);
}

void divide_range(float* values, std::int64_t n, float divisor) {
  const F32 d;
  const VF by = hn::Set(d, divisor);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    store(d, hn::Div(load(d, values + i, extent), by), values + i, extent);
  });
}

void divide(const TensorView& values, float divisor, Context& context) {
  for_ranges(context, values.count, elements_per_task,
             [&](std::int64_t first, std::int64_t n) { divide_range(values.as<float>() + first, n, divisor); });
}

void combine_range(const float* a, const float* b, float* out, std::int64_t n, float alpha, float beta) {
  const F32 d;
  const VF of_a = hn::Set(d, alpha);
  const VF of_b = hn::Set(d, beta);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF sum = hn::Add(hn::Mul(of_a, load(d, a + i, extent)), hn::Mul(of_b, load(d, b + i, extent)));
    store(d, sum, out + i, extent);
  });
}

void combine(const Combine& op, Context& context) {
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    combine_range(op.a.as<float>() + first, op.b.as<float>() + first, op.out.as<float>() + first, n, op.alpha, op.beta);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(muon_direction);
HWY_EXPORT(muon_update);
HWY_EXPORT(divide);
HWY_EXPORT(combine);

WorkspaceNeed workspace_of(const MuonDirection&) { return {}; }
void run(const MuonDirection& op, Context& context) {
  as_decided(op, [&](const MuonDirection& decided) { HWY_DYNAMIC_DISPATCH(muon_direction)(decided, context); });
}

WorkspaceNeed workspace_of(const DivideByNorm&) { return {}; }
void run(const DivideByNorm& op, Context& context) {
  const auto norm = static_cast<float>(std::sqrt(exact_sum_value(op.squares->limbs)));
  HWY_DYNAMIC_DISPATCH(divide)(op.values, norm + op.epsilon, context);
}

WorkspaceNeed workspace_of(const Combine&) { return {}; }
void run(const Combine& op, Context& context) { HWY_DYNAMIC_DISPATCH(combine)(op, context); }

WorkspaceNeed workspace_of(const MuonUpdate&) { return {}; }
void run(const MuonUpdate& op, Context& context) {
  as_decided(op, [&](const MuonUpdate& decided) { HWY_DYNAMIC_DISPATCH(muon_update)(decided, context); });
}

}  // namespace zt::cpu
#endif
