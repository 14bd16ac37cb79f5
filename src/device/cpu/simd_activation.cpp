// Activation functions and their derivatives, in one pass.
#include "device/cpu/panels.h"
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

// Each function has at(x): f(x) and f'(x), of which the compiler leaves out what is not used, so that both have the
// same bits alone and together. At infinities they take their limits (f(-inf) = -0 for the gelus and silu), and NaN
// gives NaN.
struct ValueAndSlope {
  VF value;
  VF slope;
};

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
  static HWY_INLINE ValueAndSlope at(VF x) { return {x, hn::IfThenElse(hn::IsNaN(x), x, constant(1.0F))}; }
};

struct Relu {
  static HWY_INLINE ValueAndSlope at(VF x) {
    const VF zero = hn::Zero(F32());
    return {hn::IfThenElse(hn::Lt(x, zero), zero, x),
            hn::IfThenElse(hn::Gt(x, zero), constant(1.0F), hn::IfThenElse(hn::Le(x, zero), zero, x))};
  }
};

// 0.5 x (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016).
struct GeluNew {
  static constexpr float linear = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float cubic = linear * 0.044715F;
  static HWY_INLINE ValueAndSlope at(VF unlimited) {
    const VF x = limited(unlimited, -16.0F, 16.0F);  // beyond, sigmoid and slope are 0 or 1 in fp32
    const VF square = hn::Mul(x, x);
    const Sigmoid s = sigmoid_at(hn::Mul(x, hn::MulAdd(square, constant(cubic), constant(linear))));
    const VF inner_slope = hn::MulAdd(square, constant(3.0F * cubic), constant(linear));
    return {hn::Mul(finite_below(unlimited), s.value), hn::MulAdd(hn::Mul(x, s.slope), inner_slope, s.value)};
  }
};

// x Phi(x), Phi the standard normal distribution.
struct Gelu {
  static HWY_INLINE ValueAndSlope at(VF unlimited) {
    const VF x = limited(unlimited, -16.0F, 16.0F);
    const Normal normal = normal_at(x);
    return {hn::Mul(finite_below(unlimited), normal.probability), hn::MulAdd(x, normal.density, normal.probability)};
  }
};

struct Silu {
  static HWY_INLINE ValueAndSlope at(VF unlimited) {
    const VF x = limited(unlimited, -120.0F, 120.0F);
    const Sigmoid s = sigmoid_at(x);
    return {hn::Mul(finite_below(unlimited), s.value), hn::MulAdd(x, s.slope, s.value)};
  }
};

struct Tanh {
  // 1 - tanh^2 = 4 sigmoid'(2 x)
  static HWY_INLINE ValueAndSlope at(VF x) {
    return {tanh_of(x), hn::Mul(constant(4.0F), sigmoid_at(hn::Add(x, x)).slope)};
  }
};

template <class Function, typename T>
void forward_range(const T* in, T* out, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    store(d, Function::at(load(d, in + i, extent)).value, out + i, extent);
  });
}

template <class Function, typename T>
void backward_range(const T* in, const T* d_out, T* d_in, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const VF slope = Function::at(load(d, in + i, extent)).slope;
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

template <class Function, typename T>
void gradient_and_value_range(const T* in, T* gradient, T* out, std::int64_t n) {
  const F32 d;
  for_vectors(d, n, [&](std::int64_t i, auto extent) HWY_ATTR {
    const ValueAndSlope f = Function::at(load(d, in + i, extent));
    store(d, hn::Mul(f.slope, load(d, gradient + i, extent)), gradient + i, extent);
    store(d, f.value, out + i, extent);
  });
}

void activate_panel_on_target(Activation activation, DType dtype, const void* in, void* out, std::int64_t stride,
                              std::int64_t rows, std::int64_t columns) {
  dispatch(dtype, [&]<typename T>(T*) {
    with_function(activation, [&]<class Function>(Function) {
      for (std::int64_t row = 0; row < rows; ++row) {
        forward_range<Function>(static_cast<const T*>(in) + row * stride, static_cast<T*>(out) + row * stride, columns);
      }
    });
  });
}

void activation_gradient_panel_on_target(Activation activation, DType dtype, const void* in, void* gradient, void* out,
                                         std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  dispatch(dtype, [&]<typename T>(T*) {
    with_function(activation, [&]<class Function>(Function) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* x = static_cast<const T*>(in) + row * stride;
        T* d = static_cast<T*>(gradient) + row * stride;
        if (out == nullptr) {
          backward_range<Function>(x, d, d, columns);
        } else {
          gradient_and_value_range<Function>(x, d, static_cast<T*>(out) + row * stride, columns);
        }
      }
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

HWY_EXPORT(activate_panel_on_target);
HWY_EXPORT(activation_gradient_panel_on_target);

void activate_panel(Activation activation, DType dtype, const void* in, void* out, std::int64_t stride,
                    std::int64_t rows, std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(activate_panel_on_target)(activation, dtype, in, out, stride, rows, columns);
}
void activation_gradient_panel(Activation activation, DType dtype, const void* in, void* gradient, void* out,
                               std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(activation_gradient_panel_on_target)
  (activation, dtype, in, gradient, out, stride, rows, columns);
}

WorkspaceNeed workspace_of(const ActivationForward&) { return {}; }
void run(const ActivationForward& op, Context& context) { HWY_DYNAMIC_DISPATCH(activation_forward)(op, context); }

WorkspaceNeed workspace_of(const ActivationBackward&) { return {}; }
void run(const ActivationBackward& op, Context& context) { HWY_DYNAMIC_DISPATCH(activation_backward)(op, context); }

}  // namespace zt::cpu
#endif
