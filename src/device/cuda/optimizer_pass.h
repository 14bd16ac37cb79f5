// The pass of an optimizer over gradient, parameter, moments and the published copy. For .cu files only.
#pragma once

#include "device/cuda/any_format.h"
#include "device/optimizer_pass.h"

namespace zt::cuda {

// a + b c with two roundings, which nvcc would fuse into one.
__device__ __forceinline__ float plus_product(float a, float b, float c) { return __fadd_rn(a, __fmul_rn(b, c)); }

// Optimizer: a class of device/optimizer_pass.h that computes one step as step(g, p, s), of a gradient, a parameter and
// its moments. One moment more than there is keeps arrays from being empty.
template <class Optimizer>
struct UpdateBody {
  static constexpr int moments = Optimizer::moments;
  static constexpr int read_moments = moments - Optimizer::only_written;
  Optimizer optimizer;
  float factor_of_host;
  const UpdateDecision* decision;  // null: the host has decided
  AnyTensor gradient, parameter, published;
  AnyTensor moment[moments + 1];

  template <int N>
  struct Loaded {
    Bits<N> gradient, parameter;
    Bits<N> moment[moments + 1];
  };

  template <int N>
  __device__ __forceinline__ Loaded<N> load(std::int64_t i) const {
    Loaded<N> loaded = {};
    if constexpr (Optimizer::takes_gradient) loaded.gradient = gradient.load<N>(i);
    loaded.parameter = parameter.load<N>(i);
#pragma unroll
    for (int k = 0; k < read_moments; ++k) loaded.moment[k] = moment[k].template load<N>(i);
    return loaded;
  }

  template <int N>
  __device__ __forceinline__ void store(std::int64_t i, const Loaded<N>& loaded) const {
    float factor = factor_of_host;
    if (decision != nullptr) {
      const UpdateDecision decided = *decision;
      if (decided.apply == 0) return;
      factor = decided.factor;
    }
    const Floats<N> g = gradient.floats<N>(loaded.gradient);
    Floats<N> p = parameter.floats<N>(loaded.parameter);
    Floats<N> s[moments + 1];
#pragma unroll
    for (int k = 0; k < read_moments; ++k) s[k] = moment[k].template floats<N>(loaded.moment[k]);
#pragma unroll
    for (int e = 0; e < N; ++e) {
      float element[moments + 1];
#pragma unroll
      for (int k = 0; k < read_moments; ++k) element[k] = s[k].values[e];
      const float taken = Optimizer::scales_gradient ? __fmul_rn(g.values[e], factor) : g.values[e];
      optimizer.step(taken, p.values[e], element);
#pragma unroll
      for (int k = 0; k < moments; ++k) s[k].values[e] = element[k];
    }
    if constexpr (Optimizer::changes_moments) {
#pragma unroll
      for (int k = 0; k < moments; ++k) moment[k].template store<N>(i, moment[k].template bits<N>(s[k]));
    }
    if constexpr (Optimizer::changes_parameter) {
      const Bits<N> bits = parameter.bits<N>(p);
      parameter.store<N>(i, bits);
      if (published.data != nullptr) published.store<N>(i, published.bits<N>(parameter.floats<N>(bits)));
    }
  }
};

template <class Optimizer>
void update(const char* name, UpdateBody<Optimizer> body, const ConstTensorView& gradient, const TensorView& parameter,
            const TensorView& published, std::initializer_list<TensorView> moments, const Launch& where) {
  body.gradient = gradient;
  body.parameter = parameter;
  body.published = published;
  bool packed = can_pack<4>({gradient, parameter, published});
  int k = 0;
  for (const TensorView& moment : moments) {
    body.moment[k++] = moment;
    packed = packed && can_pack<4>({moment});
  }
  for_elements<4, 1>(name, body, parameter.count, packed, where);
}
template <class Optimizer, class Op>
void update(const char* name, const Op& op, std::initializer_list<TensorView> moments, const Launch& where) {
  update(name, UpdateBody<Optimizer>{Optimizer(op), op.factor, op.decision, {}, {}, {}, {}}, op.gradient, op.parameter,
         op.published, moments, where);
}

}  // namespace zt::cuda
