// Activation functions and their derivatives, in one pass.
#include "device/cpu/simd.h"
#include "device/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/simd_activation.cpp"
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

// Each function has value(x) = f(x) and slope(x) = f'(x). At infinities both take their limits (f(-inf) = -0 for the
// gelus and silu), and NaN gives NaN.

// x with -inf replaced by the lowest finite number, so that x * 0 is -0 and not NaN.
HWY_INLINE VF finite_below(VF x) { return at_least(constant(-3.40282347e38F), x); }

// 1 / (1 + e^-x) and its derivative, both with small relative error for x of either sign.
struct Sigmoid {
  VF value;
  VF slope;
};
HWY_INLINE Sigmoid sigmoid_at(VF x) {
  const VF one = constant(1.0F);
  const VF e = exp_of(hn::Neg(hn::Abs(x)));
  const VF inverse = hn::Div(one, hn::Add(one, e));
  const VF below_half = hn::Mul(e, inverse);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(F32())), below_half, inverse), hn::Mul(below_half, inverse)};
}

struct Identity {
  static HWY_INLINE VF value(VF x) { return x; }
  static HWY_INLINE VF slope(VF x) { return hn::IfThenElse(hn::IsNaN(x), x, constant(1.0F)); }
};

struct Relu {
  static HWY_INLINE VF value(VF x) { return hn::IfThenElse(hn::Lt(x, hn::Zero(F32())), hn::Zero(F32()), x); }
  static HWY_INLINE VF slope(VF x) {
    const VF zero = hn::Zero(F32());
    return hn::IfThenElse(hn::Gt(x, zero), constant(1.0F), hn::IfThenElse(hn::Le(x, zero), zero, x));
  }
};

// 0.5 x (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016).
struct GeluNew {
  static constexpr float linear = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float cubic = linear * 0.044715F;
  static HWY_INLINE VF value(VF x) {
    const VF square = hn::Mul(x, x);
    const VF minus_2u = hn::Mul(x, hn::MulAdd(square, constant(-cubic), constant(-linear)));
    return hn::Div(finite_below(x), hn::Add(constant(1.0F), exp_of(minus_2u)));
  }
  static HWY_INLINE VF slope(VF unlimited) {
    const VF x = limited(unlimited, -16.0F, 16.0F);  // beyond, the slope is 0 or 1 in fp32
    const VF square = hn::Mul(x, x);
    const Sigmoid s = sigmoid_at(hn::Mul(x, hn::MulAdd(square, constant(cubic), constant(linear))));
    const VF inner_slope = hn::MulAdd(square, constant(3.0F * cubic), constant(linear));
    return hn::MulAdd(hn::Mul(x, s.slope), inner_slope, s.value);
  }
};

// x Phi(x), Phi the standard normal distribution.
struct Gelu {
  static HWY_INLINE VF value(VF x) { return hn::Mul(finite_below(x), normal_at(x).probability); }
  static HWY_INLINE VF slope(VF unlimited) {
    const VF x = limited(unlimited, -16.0F, 16.0F);
    const Normal normal = normal_at(x);
    return hn::MulAdd(x, normal.density, normal.probability);
  }
};

struct Silu {
  static HWY_INLINE VF value(VF x) { return hn::Div(finite_below(x), hn::Add(constant(1.0F), exp_of(hn::Neg(x)))); }
  static HWY_INLINE VF slope(VF unlimited) {
    const VF x = limited(unlimited, -120.0F, 120.0F);
    const Sigmoid s = sigmoid_at(x);
    return hn::MulAdd(x, s.slope, s.value);
  }
};

struct Tanh {
  static HWY_INLINE VF value(VF x) { return tanh_of(x); }
  // 1 - tanh^2 = 4 sigmoid'(2 x)
  static HWY_INLINE VF slope(VF x) { return hn::Mul(constant(4.0F), sigmoid_at(hn::Add(x, x)).slope); }
};

template <class Function, typename T>
void forward_range(const T* in, T* out, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    store(d, Function::value(load(d, in + i, extent)), out + i, extent);
  });
}

template <class Function, typename T>
void backward_range(const T* in, const T* d_out, T* d_in, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF slope = Function::slope(load(d, in + i, extent));
    store(d, hn::Mul(slope, load(d, d_out + i, extent)), d_in + i, extent);
  });
}

// Calls call(Function{}) with the function that `activation` names.
template <class Call>
void with_function(Activation activation, const Call& call) {
  switch (activation) {
    case Activation::identity: return call(Identity{});
    case Activation::gelu_new: return call(GeluNew{});
    case Activation::gelu: return call(Gelu{});
    case Activation::relu: return call(Relu{});
    case Activation::silu: return call(Silu{});
    case Activation::tanh: return call(Tanh{});
  }
}

void activation_forward(const ActivationForward& op, Context& context) {
  for_ranges(context, op.out.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(op.out.dtype, [&]<typename T>(T*) {
      with_function(op.activation, [&]<class Function>(Function) {
        forward_range<Function>(op.in.as<T>() + first, op.out.as<T>() + first, n);
      });
    });
  });
}

void activation_backward(const ActivationBackward& op, Context& context) {
  for_ranges(context, op.d_in.count, elements_per_task, [&](std::int64_t first, std::int64_t n) {
    dispatch(op.d_in.dtype, [&]<typename T>(T*) {
      with_function(op.activation, [&]<class Function>(Function) {
        backward_range<Function>(op.in.as<T>() + first, op.d_out.as<T>() + first, op.d_in.as<T>() + first, n);
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace zt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zt::cpu {

HWY_EXPORT(activation_forward);
HWY_EXPORT(activation_backward);

WorkspaceNeed workspace_of(const ActivationForward&) { return {}; }
void run(const ActivationForward& op, Context& context) { HWY_DYNAMIC_DISPATCH(activation_forward)(op, context); }

WorkspaceNeed workspace_of(const ActivationBackward&) { return {}; }
void run(const ActivationBackward& op, Context& context) { HWY_DYNAMIC_DISPATCH(activation_backward)(op, context); }

}  // namespace zt::cpu
#endif
