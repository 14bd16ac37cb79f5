// Activation functions: value(x) = f(x) and slope(x) = f'(x) in fp32, with a few ulp of error. At infinities both take
// their limits (f(-inf) = -0 for the gelus and silu), and NaN gives NaN. For .cu files only.
#pragma once

#include <cfloat>

#include "device/cuda/kernel_support.h"

namespace zt::cuda {

// x with -inf replaced by the lowest finite number, so that x * 0 is -0 and not NaN.
__device__ __forceinline__ float finite_below(float x) { return x < -FLT_MAX ? -FLT_MAX : x; }
// Value in [-bound, bound]; NaN stays NaN.
__device__ __forceinline__ float limited(float x, float bound) { return x < -bound ? -bound : (x > bound ? bound : x); }

// 1 / (1 + e^-x) and its derivative, both with small relative error for x of either sign.
struct Sigmoid {
  float value, slope;
};
__device__ __forceinline__ Sigmoid sigmoid_at(float x) {
  const float e = expf(-fabsf(x));
  const float inverse = __fdividef(1.0F, 1.0F + e);  // of a number in [1, 2]
  const float below_half = e * inverse;
  return {x < 0.0F ? below_half : inverse, below_half * inverse};
}
// x / (1 + e^minus). The quick division gives 0 where the divisor is above 2^126.
__device__ __forceinline__ float times_sigmoid(float x, float minus) {
  return __fdividef(finite_below(x), 1.0F + expf(minus));
}

struct Identity {
  static __device__ __forceinline__ float value(float x) { return x; }
  static __device__ __forceinline__ float slope(float x) { return x == x ? 1.0F : x; }
};

struct Relu {
  static __device__ __forceinline__ float value(float x) { return x < 0.0F ? 0.0F : x; }
  static __device__ __forceinline__ float slope(float x) { return x > 0.0F ? 1.0F : (x <= 0.0F ? 0.0F : x); }
};

// 0.5 x (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks & Gimpel 2016).
struct GeluNew {
  static constexpr float linear = 1.59576912F;  // 2 sqrt(2 / pi)
  static constexpr float cubic = linear * 0.044715F;
  static __device__ __forceinline__ float value(float x) {
    return times_sigmoid(x, x * __fmaf_rn(x * x, -cubic, -linear));
  }
  static __device__ __forceinline__ float slope(float unlimited) {
    const float x = limited(unlimited, 16.0F);  // beyond, the slope is 0 or 1 in fp32
    const float square = x * x;
    const Sigmoid s = sigmoid_at(x * __fmaf_rn(square, cubic, linear));
    return __fmaf_rn(x * s.slope, __fmaf_rn(square, 3.0F * cubic, linear), s.value);
  }
};

// x Phi(x), Phi the standard normal distribution. The complementary error function keeps the relative precision of
// small probabilities.
struct Gelu {
  static __device__ __forceinline__ float probability(float x) { return 0.5F * erfcf(-0.707106781F * x); }
  static __device__ __forceinline__ float value(float x) { return finite_below(x) * probability(x); }
  static __device__ __forceinline__ float slope(float unlimited) {
    const float x = limited(unlimited, 16.0F);
    const float density = 0.398942280F * expf(-0.5F * x * x);
    return __fmaf_rn(x, density, probability(x));
  }
};

struct Silu {
  static __device__ __forceinline__ float value(float x) { return times_sigmoid(x, -x); }
  static __device__ __forceinline__ float slope(float unlimited) {
    const float x = limited(unlimited, 120.0F);
    const Sigmoid s = sigmoid_at(x);
    return __fmaf_rn(x, s.slope, s.value);
  }
};

struct Tanh {
  static __device__ __forceinline__ float value(float x) { return tanhf(x); }
  // 1 - tanh^2 = 4 sigmoid'(2 x)
  static __device__ __forceinline__ float slope(float x) { return 4.0F * sigmoid_at(x + x).slope; }
};

// Calls call(Function{}) with the function that `activation` names.
template <typename Call>
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

}  // namespace zt::cuda
