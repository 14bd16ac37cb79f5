// Steps of the optimizers: one pass over gradient, master, moments and the published copy. Additions and
// multiplications are rounded one by one, in PyTorch's order, so no fused operation is used here.
#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_optimizer.cpp"
// First, as it includes this file again for each instruction set.
// clang-format off
#include "hwy/foreach_target.h"
// clang-format on
#include "device/cpu/simd_common-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

// Where the rounded copy goes; None: there is none.
struct None {};
template <class Extent>
HWY_INLINE void publish(VF, None*, std::int64_t, Extent) {}
template <typename T, class Extent>
HWY_INLINE void publish(VF value, T* to, std::int64_t i, Extent extent) {
  store(F32(), value, to + i, extent);
}

template <typename G, typename P>
void adam_range(const AdamUpdate& op, const G* gradient, P* published, std::int64_t first, std::int64_t n) {
  const F32 d;
  float* parameter = op.parameter.as<float>() + first;
  float* first_moment = op.first_moment.as<float>() + first;
  float* second_moment = op.second_moment.as<float>() + first;
  const bool coupled = !op.decoupled && op.weight_decay != 0.0F;
  const VF factor = hn::Set(d, op.factor);
  const VF weight_decay = hn::Set(d, op.weight_decay);
  const VF shrink = hn::Set(d, op.decoupled ? 1.0F - op.learning_rate * op.weight_decay : 1.0F);
  const VF beta2 = hn::Set(d, op.beta2);
  const VF one_minus_beta1 = hn::Set(d, op.one_minus_beta1);
  const VF one_minus_beta2 = hn::Set(d, op.one_minus_beta2);
  const VF step_size = hn::Set(d, op.step_size);
  const VF correction = hn::Set(d, op.bias_correction2_sqrt);
  const VF epsilon = hn::Set(d, op.epsilon);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF p = load(d, parameter + i, extent);
    VF g = hn::Mul(load(d, gradient + i, extent), factor);
    if (coupled) g = hn::Add(g, hn::Mul(weight_decay, p));
    p = hn::Mul(p, shrink);
    VF m = load(d, first_moment + i, extent);
    m = hn::Add(m, hn::Mul(hn::Sub(g, m), one_minus_beta1));
    VF v = hn::Mul(load(d, second_moment + i, extent), beta2);
    v = hn::Add(v, hn::Mul(hn::Mul(g, g), one_minus_beta2));
    const VF divisor = hn::Add(hn::Div(hn::Sqrt(v), correction), epsilon);
    p = hn::Sub(p, hn::Div(hn::Mul(step_size, m), divisor));
    store(d, p, parameter + i, extent);
    store(d, m, first_moment + i, extent);
    store(d, v, second_moment + i, extent);
    publish(p, published, i, extent);
  });
}

template <typename G, typename P>
void sgd_range(const SgdUpdate& op, const G* gradient, P* published, std::int64_t first, std::int64_t n) {
  const F32 d;
  float* parameter = op.parameter.as<float>() + first;
  const bool with_momentum = op.momentum != 0.0F;
  float* buffer = with_momentum ? op.momentum_buffer.as<float>() + first : nullptr;
  const VF factor = hn::Set(d, op.factor);
  const VF weight_decay = hn::Set(d, op.weight_decay);
  const VF momentum = hn::Set(d, op.momentum);
  const VF one_minus_dampening = hn::Set(d, 1.0F - op.dampening);
  const VF learning_rate = hn::Set(d, op.learning_rate);
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF p = load(d, parameter + i, extent);
    VF g = hn::Mul(load(d, gradient + i, extent), factor);
    if (op.weight_decay != 0.0F) g = hn::Add(g, hn::Mul(weight_decay, p));
    if (with_momentum) {
      VF b = g;
      if (!op.first_step) {
        b = hn::Add(hn::Mul(momentum, load(d, buffer + i, extent)), hn::Mul(one_minus_dampening, g));
      }
      store(d, b, buffer + i, extent);
      g = op.nesterov ? hn::Add(g, hn::Mul(momentum, b)) : b;
    }
    const VF updated = hn::Sub(p, hn::Mul(learning_rate, g));
    store(d, updated, parameter + i, extent);
    publish(updated, published, i, extent);
  });
}

// Calls call(gradient, published) with typed pointers to the element `first` of each.
template <class Op, class Call>
void with_types(const Op& op, std::int64_t first, const Call& call) {
  dispatch(op.gradient.dtype, [&]<typename G>(G*) {
    const G* gradient = op.gradient.template as<G>() + first;
    if (!op.published) return call(gradient, static_cast<None*>(nullptr));
    dispatch(op.published.dtype, [&]<typename P>(P*) { call(gradient, op.published.template as<P>() + first); });
  });
}

void adam_update(const AdamUpdate& op, Context& context) {
  for_ranges(context, op.parameter.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    with_types(op, first,
               [&](const auto* gradient, auto* published) { adam_range(op, gradient, published, first, n); });
  });
}

void sgd_update(const SgdUpdate& op, Context& context) {
  for_ranges(context, op.parameter.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    with_types(op, first, [&](const auto* gradient, auto* published) { sgd_range(op, gradient, published, first, n); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(adam_update);
HWY_EXPORT(sgd_update);

WorkspaceNeed workspace_of(const AdamUpdate&) { return {}; }
void run(const AdamUpdate& op, Context& context) { HWY_DYNAMIC_DISPATCH(adam_update)(op, context); }

WorkspaceNeed workspace_of(const SgdUpdate&) { return {}; }
void run(const SgdUpdate& op, Context& context) { HWY_DYNAMIC_DISPATCH(sgd_update)(op, context); }

}  // namespace zt::cpu
#endif
