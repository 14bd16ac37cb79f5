// Steps of the optimizers: one pass over gradient, master, moments and the published copy. Additions and
// multiplications are rounded one by one, in PyTorch's order, so no fused operation is used here.
#include <algorithm>
#include <cmath>

#include "core/exact_sum.h"
#include "device/cpu/as_decided.h"
#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_optimizer.cpp"
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

// ---- The optimizers: what one step does to vectors of gradients g, parameters p and moments s.

struct Adam : OptimizerPass {
  static constexpr int moments = 2;
  explicit Adam(const AdamUpdate& op)
      : coupled(!op.decoupled && op.weight_decay != 0.0F),
        weight_decay(hn::Set(F32(), op.weight_decay)),
        shrink(hn::Set(F32(), op.decoupled ? 1.0F - op.learning_rate * op.weight_decay : 1.0F)),
        beta2(hn::Set(F32(), op.beta2)),
        one_minus_beta1(hn::Set(F32(), op.one_minus_beta1)),
        one_minus_beta2(hn::Set(F32(), op.one_minus_beta2)),
        step_size(hn::Set(F32(), op.step_size)),
        correction(hn::Set(F32(), op.bias_correction2_sqrt)),
        epsilon(hn::Set(F32(), op.epsilon)) {}

  HWY_INLINE void average(VF g, VF& p, VF* s) const {
    if (coupled) g = hn::Add(g, hn::Mul(weight_decay, p));
    p = hn::Mul(p, shrink);
    s[0] = hn::Add(s[0], hn::Mul(hn::Sub(g, s[0]), one_minus_beta1));
    s[1] = hn::Add(hn::Mul(s[1], beta2), hn::Mul(hn::Mul(g, g), one_minus_beta2));
  }
  HWY_INLINE void move(VF& p, VF mean, VF mean_of_squares) const {
    const VF divisor = hn::Add(hn::Div(hn::Sqrt(mean_of_squares), correction), epsilon);
    p = hn::Sub(p, hn::Div(hn::Mul(step_size, mean), divisor));
  }
  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    average(g, p, s);
    move(p, s[0], s[1]);
  }

  bool coupled;
  VF weight_decay, shrink, beta2, one_minus_beta1, one_minus_beta2, step_size, correction, epsilon;
};

struct AmsGrad : Adam {
  static constexpr int moments = 3;
  using Adam::Adam;
  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    average(g, p, s);
    s[2] = hn::Max(s[2], s[1]);
    move(p, s[0], s[2]);
  }
};

struct Sgd : OptimizerPass {
  static constexpr int moments = 0;
  explicit Sgd(const SgdUpdate& op)
      : decays(op.weight_decay != 0.0F),
        weight_decay(hn::Set(F32(), op.weight_decay)),
        learning_rate(hn::Set(F32(), op.learning_rate)) {}

  HWY_INLINE VF decayed(VF g, VF p) const { return decays ? hn::Add(g, hn::Mul(weight_decay, p)) : g; }
  HWY_INLINE void operator()(VF g, VF& p, VF* /*s*/) const { p = hn::Sub(p, hn::Mul(learning_rate, decayed(g, p))); }

  bool decays;
  VF weight_decay, learning_rate;
};

struct SgdWithMomentum : Sgd {
  static constexpr int moments = 1;
  explicit SgdWithMomentum(const SgdUpdate& op)
      : Sgd(op),
        first_step(op.first_step),
        nesterov(op.nesterov),
        momentum(hn::Set(F32(), op.momentum)),
        one_minus_dampening(hn::Set(F32(), 1.0F - op.dampening)) {}

  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    g = decayed(g, p);
    s[0] = first_step ? g : hn::Add(hn::Mul(momentum, s[0]), hn::Mul(one_minus_dampening, g));
    const VF direction = nesterov ? hn::Add(g, hn::Mul(momentum, s[0])) : s[0];
    p = hn::Sub(p, hn::Mul(learning_rate, direction));
  }

  bool first_step, nesterov;
  VF momentum, one_minus_dampening;
};

struct Adagrad : OptimizerPass {
  static constexpr int moments = 1;
  explicit Adagrad(const AdagradUpdate& op)
      : decays(op.weight_decay != 0.0F),
        weight_decay(hn::Set(F32(), op.weight_decay)),
        learning_rate(hn::Set(F32(), op.learning_rate)),
        epsilon(hn::Set(F32(), op.epsilon)) {}

  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    if (decays) g = hn::Add(g, hn::Mul(weight_decay, p));
    s[0] = hn::Add(s[0], hn::Mul(g, g));
    p = hn::Sub(p, hn::Div(hn::Mul(learning_rate, g), hn::Add(hn::Sqrt(s[0]), epsilon)));
  }

  bool decays;
  VF weight_decay, learning_rate, epsilon;
};

struct Lion : OptimizerPass {
  static constexpr int moments = 1;
  explicit Lion(const LionUpdate& op)
      : shrink(hn::Set(F32(), 1.0F - op.learning_rate * op.weight_decay)),
        beta1(hn::Set(F32(), op.beta1)),
        beta2(hn::Set(F32(), op.beta2)),
        one_minus_beta1(hn::Set(F32(), op.one_minus_beta1)),
        one_minus_beta2(hn::Set(F32(), op.one_minus_beta2)),
        learning_rate(hn::Set(F32(), op.learning_rate)) {}

  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    p = hn::Mul(p, shrink);
    const VF direction = hn::Add(hn::Mul(s[0], beta1), hn::Mul(g, one_minus_beta1));
    const VF zero = hn::Zero(F32());
    const VF down = hn::IfThenElse(hn::Gt(direction, zero), learning_rate, zero);
    const VF up = hn::IfThenElse(hn::Lt(direction, zero), learning_rate, zero);
    p = hn::Add(hn::Sub(p, down), up);
    s[0] = hn::Add(hn::Mul(s[0], beta2), hn::Mul(g, one_minus_beta2));
  }

  VF shrink, beta1, beta2, one_minus_beta1, one_minus_beta2, learning_rate;
};

// The direction in which LAMB moves.
struct Lamb {
  explicit Lamb(const LambDirection& rule)
      : inside(rule.epsilon_inside_root),
        correction1(hn::Set(F32(), rule.bias_correction1)),
        correction2(hn::Set(F32(), rule.bias_correction2)),
        epsilon(hn::Set(F32(), rule.epsilon)),
        weight_decay(hn::Set(F32(), rule.weight_decay)) {}

  HWY_INLINE VF direction(VF p, VF mean, VF mean_of_squares) const {
    const VF squares = hn::Div(mean_of_squares, correction2);
    const VF divisor = inside ? hn::Sqrt(hn::Add(squares, epsilon)) : hn::Add(hn::Sqrt(squares), epsilon);
    return hn::Add(hn::Div(hn::Div(mean, correction1), divisor), hn::Mul(weight_decay, p));
  }

  bool inside;
  VF correction1, correction2, epsilon, weight_decay;
};

struct LambMean : Lamb, LambMomentsPass {
  explicit LambMean(const LambMoments& op)
      : Lamb(op.rule),
        beta1(hn::Set(F32(), op.beta1)),
        beta2(hn::Set(F32(), op.beta2)),
        one_minus_beta1(hn::Set(F32(), op.one_minus_beta1)),
        one_minus_beta2(hn::Set(F32(), op.one_minus_beta2)) {}

  HWY_INLINE void operator()(VF g, VF& p, VF* s) const {
    s[0] = hn::Add(hn::Mul(s[0], beta1), hn::Mul(g, one_minus_beta1));
    s[1] = hn::Add(hn::Mul(s[1], beta2), hn::Mul(hn::Mul(g, g), one_minus_beta2));
    s[2] = direction(p, s[0], s[1]);
  }

  VF beta1, beta2, one_minus_beta1, one_minus_beta2;
};

struct LambMove : Lamb, LambUpdatePass {
  explicit LambMove(const LambUpdate& op) : Lamb(op.rule), rate(hn::Set(F32(), op.learning_rate * *op.trust_ratio)) {}

  HWY_INLINE void operator()(VF /*g*/, VF& p, VF* s) const { p = hn::Sub(p, hn::Mul(rate, direction(p, s[0], s[1]))); }

  VF rate;
};

void adam_update(const AdamUpdate& op, Context& context) {
  if (op.largest_second_moment) {
    return update<AmsGrad>(op, {op.first_moment, op.second_moment, op.largest_second_moment}, context);
  }
  update<Adam>(op, {op.first_moment, op.second_moment}, context);
}

void sgd_update(const SgdUpdate& op, Context& context) {
  if (op.momentum_buffer) return update<SgdWithMomentum>(op, {op.momentum_buffer}, context);
  update<Sgd>(op, {}, context);
}

void adagrad_update(const AdagradUpdate& op, Context& context) { update<Adagrad>(op, {op.sum_of_squares}, context); }

void lion_update(const LionUpdate& op, Context& context) { update<Lion>(op, {op.momentum}, context); }

void lamb_moments(const LambMoments& op, Context& context) {
  update(LambMean(op), op.factor, op.gradient, op.parameter, {}, {op.first_moment, op.second_moment, op.direction},
         context);
}

void lamb_update(const LambUpdate& op, Context& context) {
  update(LambMove(op), 1.0F, op.parameter, op.parameter, op.published, {op.first_moment, op.second_moment}, context);
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(adam_update);
HWY_EXPORT(sgd_update);
HWY_EXPORT(adagrad_update);
HWY_EXPORT(lion_update);
HWY_EXPORT(lamb_moments);
HWY_EXPORT(lamb_update);

WorkspaceNeed workspace_of(const AdamUpdate&) { return {}; }
void run(const AdamUpdate& op, Context& context) {
  as_decided(op, [&](const AdamUpdate& decided) { HWY_DYNAMIC_DISPATCH(adam_update)(decided, context); });
}

WorkspaceNeed workspace_of(const SgdUpdate&) { return {}; }
void run(const SgdUpdate& op, Context& context) {
  as_decided(op, [&](const SgdUpdate& decided) { HWY_DYNAMIC_DISPATCH(sgd_update)(decided, context); });
}

WorkspaceNeed workspace_of(const AdagradUpdate&) { return {}; }
void run(const AdagradUpdate& op, Context& context) {
  as_decided(op, [&](const AdagradUpdate& decided) { HWY_DYNAMIC_DISPATCH(adagrad_update)(decided, context); });
}

WorkspaceNeed workspace_of(const LionUpdate&) { return {}; }
void run(const LionUpdate& op, Context& context) {
  as_decided(op, [&](const LionUpdate& decided) { HWY_DYNAMIC_DISPATCH(lion_update)(decided, context); });
}

WorkspaceNeed workspace_of(const LambMoments&) { return {}; }
void run(const LambMoments& op, Context& context) {
  as_decided(op, [&](const LambMoments& decided) { HWY_DYNAMIC_DISPATCH(lamb_moments)(decided, context); });
}

WorkspaceNeed workspace_of(const TrustRatios&) { return {}; }
void run(const TrustRatios& op, Context&) {
  for (std::int64_t i = 0; i < op.count; ++i) {
    const double parameters = std::sqrt(exact_sum_value(op.squares[2 * i].limbs));
    const double directions = std::sqrt(exact_sum_value(op.squares[2 * i + 1].limbs));
    double ratio = 1.0;
    if (parameters > 0.0 && directions > 0.0) ratio = std::max(op.least, std::min(op.most, parameters / directions));
    op.out[i] = static_cast<float>(ratio);
  }
}

WorkspaceNeed workspace_of(const LambUpdate&) { return {}; }
void run(const LambUpdate& op, Context& context) {
  as_decided(op, [&](const LambUpdate& decided) { HWY_DYNAMIC_DISPATCH(lamb_update)(decided, context); });
}

WorkspaceNeed workspace_of(const DecideUpdate&) { return {}; }
void run(const DecideUpdate& op, Context&) {
  const double norm = std::sqrt(exact_sum_value(op.sums[1].limbs)) * op.unscale;
  const double factor = op.clip > 0.0 ? op.unscale * std::min(1.0, op.clip / (norm + 1e-6)) : op.unscale;
  op.out->factor = static_cast<float>(factor);
  if (op.sums[0].not_finite != 0 || op.sums[1].not_finite != 0) op.out->apply = 0;
}

}  // namespace zt::cpu
#endif
