// Included once per instruction set, after simd_common-inl.h: the pass of an optimizer over gradient, parameter,
// moments and the published copy.
//
// Optimizer: a class of optimizer_pass.h that computes one step as optimizer(g, p, s), of vectors of gradients,
// parameters and moments.

#include "device/optimizer_pass.h"

#if defined(ZT_SIMD_OPTIMIZER_PASS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ZT_SIMD_OPTIMIZER_PASS_INL_H_
#undef ZT_SIMD_OPTIMIZER_PASS_INL_H_
#else
#define ZT_SIMD_OPTIMIZER_PASS_INL_H_
#endif

#include "device/cpu/simd_common-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace zt::cpu {
namespace HWY_NAMESPACE {

constexpr int most_moments = 3;

// Where the converted copy goes; None: there is none.
struct None {};
template <class Extent>
HWY_INLINE void publish(VF, None*, std::int64_t, Extent) {}
template <typename T, class Extent>
HWY_INLINE void publish(VF value, T* to, std::int64_t i, Extent extent) {
  store(F32(), value, to + i, extent);
}

// Master and moments in fp32.
template <class Optimizer, typename G, typename P>
void update_floats(const Optimizer& optimizer, float scale, const G* gradient, float* parameter,
                   float* const (&moments)[most_moments], P* published, std::int64_t n) {
  const F32 d;
  const VF factor = hn::Set(d, scale);
  const Optimizer step = optimizer;  // in registers: stores might change what lies in memory
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    VF s[Optimizer::moments + 1];  // one more keeps it from being empty
    for (int k = 0; k < Optimizer::moments - Optimizer::only_written; ++k) s[k] = load(d, moments[k] + i, extent);
    VF p = load(d, parameter + i, extent);
    VF g = factor;
    if constexpr (Optimizer::takes_gradient) g = load(d, gradient + i, extent);
    if constexpr (Optimizer::takes_gradient && Optimizer::scales_gradient) g = hn::Mul(g, factor);
    step(g, p, s);
    if constexpr (Optimizer::changes_moments) {
      for (int k = 0; k < Optimizer::moments; ++k) store(d, s[k], moments[k] + i, extent);
    }
    if constexpr (Optimizer::changes_parameter) {
      store(d, p, parameter + i, extent);
      publish(p, published, i, extent);
    }
  });
}

// The elements first ... first + n - 1 as floats to work on: in place if they are, else converted into buffer.
inline float* writable_floats(const TensorView& view, std::int64_t first, std::int64_t n, float* buffer) {
  if (view.dtype == DType::f32) return view.as<float>() + first;
  as_floats(view, first, n, buffer);
  return buffer;
}

// Any dtypes: pieces are converted, updated and rounded back. n <= piece.
template <class Optimizer>
void update_piece(const Optimizer& optimizer, float scale, const ConstTensorView& gradient, const TensorView& parameter,
                  const TensorView (&moments)[most_moments], const TensorView& published, std::int64_t first,
                  std::int64_t n) {
  HWY_ALIGN float buffers[most_moments + 2][piece];
  float* s[most_moments] = {};
  for (int k = 0; k < Optimizer::moments; ++k) s[k] = writable_floats(moments[k], first, n, buffers[k]);
  float* p = writable_floats(parameter, first, n, buffers[most_moments]);
  const float* g = Optimizer::takes_gradient ? as_floats(gradient, first, n, buffers[most_moments + 1]) : p;
  update_floats(optimizer, scale, g, p, s, static_cast<None*>(nullptr), n);
  for (int k = 0; k < Optimizer::moments; ++k) {
    if (Optimizer::changes_moments && moments[k].dtype != DType::f32) store_floats(s[k], moments[k], first, n, false);
  }
  if (!Optimizer::changes_parameter) return;
  if (parameter.dtype != DType::f32) store_floats(p, parameter, first, n, false);
  if (published) store_floats(as_floats(parameter, first, n, p), published, first, n, false);
}

template <class Optimizer>
void update(const Optimizer& optimizer, float factor, const ConstTensorView& gradient, const TensorView& parameter,
            const TensorView& published, const TensorView (&moments)[most_moments], Context& context) {
  bool in_floats = parameter.dtype == DType::f32;
  for (int k = 0; k < Optimizer::moments; ++k) in_floats = in_floats && moments[k].dtype == DType::f32;
  for_ranges(context, parameter.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    if (!in_floats) {
      return for_pieces(n, [&](std::int64_t begin, std::int64_t count) {
        update_piece(optimizer, factor, gradient, parameter, moments, published, first + begin, count);
      });
    }
    float* s[most_moments] = {};
    for (int k = 0; k < Optimizer::moments; ++k) s[k] = moments[k].template as<float>() + first;
    float* p = parameter.as<float>() + first;
    dispatch(gradient.dtype, [&]<typename G>(G*) {
      const G* g = gradient.template as<G>() + first;
      if (!published) return update_floats(optimizer, factor, g, p, s, static_cast<None*>(nullptr), n);
      dispatch(published.dtype, [&]<typename P>(P*) {
        update_floats(optimizer, factor, g, p, s, published.template as<P>() + first, n);
      });
    });
  });
}
template <class Optimizer, class Op>
void update(const Op& op, const TensorView (&moments)[most_moments], Context& context) {
  update(Optimizer(op), op.factor, op.gradient, op.parameter, op.published, moments, context);
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#endif
