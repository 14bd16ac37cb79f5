// Steps of the optimizers: one pass over gradient, master, moments and the published copy. Additions and
// multiplications are rounded one by one, in PyTorch's order, as device/cpu/simd_optimizer.cpp does.
#include "device/cuda/optimizer_pass.h"

namespace zt::cuda {
namespace {

// ---- The optimizers: what one step does to a gradient g, a parameter p and its moments s.

struct Adam : OptimizerPass {
  static constexpr int moments = 2;
  float learning_rate, weight_decay, beta2, one_minus_beta1, one_minus_beta2, step_size, correction, epsilon;
  bool decoupled;

  explicit Adam(const AdamUpdate& op)
      : learning_rate(op.learning_rate),
        weight_decay(op.weight_decay),
        beta2(op.beta2),
        one_minus_beta1(op.one_minus_beta1),
        one_minus_beta2(op.one_minus_beta2),
        step_size(op.step_size),
        correction(op.bias_correction2_sqrt),
        epsilon(op.epsilon),
        decoupled(op.decoupled) {}

  __device__ __forceinline__ void average(float g, float& p, float* s) const {
    if (decoupled) {
      p = __fmul_rn(p, __fsub_rn(1.0F, __fmul_rn(learning_rate, weight_decay)));
    } else if (weight_decay != 0.0F) {
      g = plus_product(g, weight_decay, p);
    }
    s[0] = plus_product(s[0], __fsub_rn(g, s[0]), one_minus_beta1);
    s[1] = plus_product(__fmul_rn(s[1], beta2), __fmul_rn(g, g), one_minus_beta2);
  }
  __device__ __forceinline__ void move(float& p, float mean, float mean_of_squares) const {
    const float divisor = __fadd_rn(__fdiv_rn(__fsqrt_rn(mean_of_squares), correction), epsilon);
    p = __fsub_rn(p, __fdiv_rn(__fmul_rn(step_size, mean), divisor));
  }
  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    average(g, p, s);
    move(p, s[0], s[1]);
  }
};

struct AmsGrad : Adam {
  static constexpr int moments = 3;
  using Adam::Adam;
  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    average(g, p, s);
    s[2] = s[2] > s[1] ? s[2] : s[1];  // NaN in s[1] stays
    move(p, s[0], s[2]);
  }
};

struct Sgd : OptimizerPass {
  static constexpr int moments = 0;
  float learning_rate, weight_decay;

  explicit Sgd(const SgdUpdate& op) : learning_rate(op.learning_rate), weight_decay(op.weight_decay) {}

  __device__ __forceinline__ float decayed(float g, float p) const {
    return weight_decay != 0.0F ? plus_product(g, weight_decay, p) : g;
  }
  __device__ __forceinline__ void step(float g, float& p, float* /*s*/) const {
    p = __fsub_rn(p, __fmul_rn(learning_rate, decayed(g, p)));
  }
};

struct SgdWithMomentum : Sgd {
  static constexpr int moments = 1;
  float momentum, dampening;
  bool nesterov, first_step;

  explicit SgdWithMomentum(const SgdUpdate& op)
      : Sgd(op), momentum(op.momentum), dampening(op.dampening), nesterov(op.nesterov), first_step(op.first_step) {}

  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    g = decayed(g, p);
    s[0] = first_step ? g : plus_product(__fmul_rn(momentum, s[0]), __fsub_rn(1.0F, dampening), g);
    const float direction = nesterov ? plus_product(g, momentum, s[0]) : s[0];
    p = __fsub_rn(p, __fmul_rn(learning_rate, direction));
  }
};

struct Adagrad : OptimizerPass {
  static constexpr int moments = 1;
  float learning_rate, weight_decay, epsilon;

  explicit Adagrad(const AdagradUpdate& op)
      : learning_rate(op.learning_rate), weight_decay(op.weight_decay), epsilon(op.epsilon) {}

  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    if (weight_decay != 0.0F) g = plus_product(g, weight_decay, p);
    s[0] = plus_product(s[0], g, g);
    p = __fsub_rn(p, __fdiv_rn(__fmul_rn(learning_rate, g), __fadd_rn(__fsqrt_rn(s[0]), epsilon)));
  }
};

struct Lion : OptimizerPass {
  static constexpr int moments = 1;
  float learning_rate, weight_decay, beta1, beta2, one_minus_beta1, one_minus_beta2;

  explicit Lion(const LionUpdate& op)
      : learning_rate(op.learning_rate),
        weight_decay(op.weight_decay),
        beta1(op.beta1),
        beta2(op.beta2),
        one_minus_beta1(op.one_minus_beta1),
        one_minus_beta2(op.one_minus_beta2) {}

  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    p = __fmul_rn(p, __fsub_rn(1.0F, __fmul_rn(learning_rate, weight_decay)));
    const float direction = plus_product(__fmul_rn(s[0], beta1), g, one_minus_beta1);
    p = __fsub_rn(p, direction > 0.0F ? learning_rate : 0.0F);
    p = __fadd_rn(p, direction < 0.0F ? learning_rate : 0.0F);
    s[0] = plus_product(__fmul_rn(s[0], beta2), g, one_minus_beta2);
  }
};

// The direction in which LAMB moves.
struct Lamb {
  LambDirection rule;

  __device__ __forceinline__ float direction(float p, float mean, float mean_of_squares) const {
    const float squares = __fdiv_rn(mean_of_squares, rule.bias_correction2);
    const float divisor = rule.epsilon_inside_root ? __fsqrt_rn(__fadd_rn(squares, rule.epsilon))
                                                   : __fadd_rn(__fsqrt_rn(squares), rule.epsilon);
    return plus_product(__fdiv_rn(__fdiv_rn(mean, rule.bias_correction1), divisor), rule.weight_decay, p);
  }
};

struct LambMean : Lamb, LambMomentsPass {
  float beta1, beta2, one_minus_beta1, one_minus_beta2;

  explicit LambMean(const LambMoments& op)
      : Lamb{op.rule},
        beta1(op.beta1),
        beta2(op.beta2),
        one_minus_beta1(op.one_minus_beta1),
        one_minus_beta2(op.one_minus_beta2) {}

  __device__ __forceinline__ void step(float g, float& p, float* s) const {
    s[0] = plus_product(__fmul_rn(s[0], beta1), g, one_minus_beta1);
    s[1] = plus_product(__fmul_rn(s[1], beta2), __fmul_rn(g, g), one_minus_beta2);
    s[2] = direction(p, s[0], s[1]);
  }
};

struct LambMove : Lamb, LambUpdatePass {
  float learning_rate;
  const float* trust_ratio;  // on the device

  explicit LambMove(const LambUpdate& op)
      : Lamb{op.rule}, learning_rate(op.learning_rate), trust_ratio(op.trust_ratio) {}

  __device__ __forceinline__ void step(float /*g*/, float& p, float* s) const {
    p = __fsub_rn(p, __fmul_rn(__fmul_rn(learning_rate, *trust_ratio), direction(p, s[0], s[1])));
  }
};

}  // namespace

void run(const AdamUpdate& op, const Launch& where) {
  if (op.largest_second_moment) {
    return update<AmsGrad>("amsgrad", op, {op.first_moment, op.second_moment, op.largest_second_moment}, where);
  }
  update<Adam>("adam", op, {op.first_moment, op.second_moment}, where);
}

void run(const SgdUpdate& op, const Launch& where) {
  if (op.momentum_buffer) return update<SgdWithMomentum>("sgd", op, {op.momentum_buffer}, where);
  update<Sgd>("sgd", op, {}, where);
}

void run(const AdagradUpdate& op, const Launch& where) { update<Adagrad>("adagrad", op, {op.sum_of_squares}, where); }

void run(const LionUpdate& op, const Launch& where) { update<Lion>("lion", op, {op.momentum}, where); }

void run(const LambMoments& op, const Launch& where) {
  update("lamb_moments", UpdateBody<LambMean>{LambMean(op), op.factor, op.decision, {}, {}, {}, {}}, op.gradient,
         op.parameter, {}, {op.first_moment, op.second_moment, op.direction}, where);
}

void run(const LambUpdate& op, const Launch& where) {
  update("lamb_update", UpdateBody<LambMove>{LambMove(op), 1.0F, op.decision, {}, {}, {}, {}}, op.parameter,
         op.parameter, op.published, {op.first_moment, op.second_moment}, where);
}

}  // namespace zt::cuda
