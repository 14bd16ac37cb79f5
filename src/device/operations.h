// The operations that a device offers: plain structs, filled in by name, given to Device::run.
//
//   device.run(Stream::compute, LayerNormForward{.in = x, .weight = w, .out = y, .rows = B * T, .columns = C, ...});
//
// Rules that every backend keeps:
//  * Activations, parameters and gradients may be fp32, bf16 or fp16 ("any dtype"); within one operation the
//    activations share one dtype; parameters of the vectors segment (weights of norms, biases) may have
//    another. Arithmetic is fp32 unless said; results are rounded once, to nearest even, on storing; a value
//    that does not fit fp16 becomes infinite.
//  * The result's bits are a function of the operands' values and shapes and of the instruction set: not of
//    threads, addresses, alignment, or how often the operation ran before.
//  * Empty inputs (a count or dimension of 0) are allowed and do nothing (sums over nothing are 0).
//  * "add": the result is added to what the output holds: out = round(out + round_to_dtype_of_out(result)).
//  * Outputs may not overlap inputs unless the comment says so.
//
// Shapes are row-major. B batch (sequences), T length, C width, H heads, D head size, V vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/exact_sum.h"
#include "core/tensor.h"

namespace zt {

enum class Activation : std::uint8_t { identity, gelu_new, gelu, relu, silu, tanh };
std::string_view name_of(Activation activation);
Activation activation_from_name(std::string_view name);  // the inverse; UserError for another name

// Which elements of an activation are dropped: element e of sample s of the GLOBAL batch draws
// random_bits(key, (first_sample + s) * elements_per_sample + e) and is dropped if uniform < probability;
// kept ones are multiplied by 1 / (1 - probability). probability 0: the operation does not draw.
// The key is derived from seed, attempted step and operation, so recomputation draws the same.
struct Dropout {
  float probability = 0.0F;
  std::uint64_t key = 0;
  std::int64_t first_sample = 0;
  std::int64_t elements_per_sample = 0;
};

// out[i] = value.
struct Fill {
  TensorView out{};
  float value = 0.0F;
};

// out[i] = in[i], converted. Same count; in and out may be the same memory if the dtypes are equal.
struct Cast {
  ConstTensorView in{};
  TensorView out{};
};

// Random initial values: element i of out gets the number of index first_element + i.
//   normal:  scale * N(0, 1) by Box-Muller from two draws of the element's own index (2 i and 2 i + 1)
//   uniform: in [-scale, scale)
//   constant: scale
enum class Distribution : std::uint8_t { normal, uniform, constant };
struct Initialize {
  TensorView out{};
  Distribution distribution = Distribution::constant;
  float scale = 0.0F;
  std::uint64_t key = 0;
  std::int64_t first_element = 0;
};

// out[m, n] = op(a)[m, k] op(b)[k, n] (+ bias[n]) (added to out if `add`).
// op(a) is a[m, k] with row stride lda, or, with transpose_a, the transpose of a[k, m] with row stride lda;
// likewise b[k, n] or b[n, k]. Strides in elements. Products accumulate in fp32. bias: vectors' dtype, optional.
// a and b have one dtype; out has the same or fp32. k = 0 gives zeros (plus bias).
//
// With ldc = n, one of two things may follow at once (both tensors of out's dtype and shape, none of them `out`):
//   activated (optional): activated = f(out), as ActivationForward would find it; out is written all the same.
//   activation_input (optional): out = out * f'(activation_input), as ActivationBackward would; not with `add`.
//     With it, `activated` is f(activation_input): what forward found and has not kept.
// A device may use the product before it is rounded to out's dtype.
struct MatMul {
  ConstTensorView a{}, b{};
  TensorView out{};
  ConstTensorView bias{};
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;
  TensorView activated{};
  ConstTensorView activation_input{};
  Activation activation = Activation::identity;
};

// d_bias[n] (+)= sum over rows of d_out[rows, n], in fp32, in an order fixed by the shape.
struct BiasGradient {
  ConstTensorView d_out{};
  TensorView d_bias{};
  std::int64_t rows = 0, columns = 0;
  bool add = false;
};

// out[b, t, :] = token_table[tokens[b, t], :] + position_table[t, :], then dropout. tokens int32 in [0, V).
struct EmbeddingForward {
  const std::int32_t* tokens = nullptr;  // [B, T]
  ConstTensorView token_table{};         // [V, C]
  ConstTensorView position_table{};      // [>= T, C]
  TensorView out{};                      // [B, T, C]
  std::int64_t batch = 0, length = 0, columns = 0, vocabulary = 0;
  Dropout dropout{};
};

// d_token_table[v, :] (+)= sum of d_out over positions that hold token v (fp32, in order of position; rows
// of absent tokens get 0, or stay with add); d_position_table[t, :] = sum over b (fp32, in order); rows from T
// up to `positions` get 0. The dropout of forward is applied to d_out first. Either table may be left out.
struct EmbeddingBackward {
  const std::int32_t* tokens = nullptr;  // [B, T]
  ConstTensorView d_out{};               // [B, T, C]
  TensorView d_token_table{};            // [V, C]
  TensorView d_position_table{};         // [positions, C]
  bool add_token = false, add_position = false;
  std::int64_t batch = 0, length = 0, columns = 0, vocabulary = 0, positions = 0;
  Dropout dropout{};
};

// sum = in + dropout(delta) if delta is given (stored rounded; may alias in), else sum is in and not written.
// out = (sum - mean) * rstd * weight + bias with mean and rstd = 1 / sqrt(var + epsilon) of the rounded sum
// per row (biased variance, two passes), both stored for backward. bias optional.
struct LayerNormForward {
  ConstTensorView in{};      // [rows, C]
  ConstTensorView delta{};   // [rows, C], optional
  TensorView sum{};          // [rows, C], needed with delta
  ConstTensorView weight{};  // [C]
  ConstTensorView bias{};    // [C], optional
  TensorView out{};          // [rows, C]
  float* mean = nullptr;     // [rows]
  float* rstd = nullptr;     // [rows]
  std::int64_t rows = 0, columns = 0;
  float epsilon = 1e-5F;
  Dropout dropout{};  // of delta
};

// d_in = gradient through the norm (+ d_residual if given: what reaches `sum` past the norm; may alias d_in).
// d_weight, d_bias (both optional): sums over rows in fp32, in an order fixed by the shape.
// d_delta (optional): the gradient of forward's delta, dropout(d_in); without dropout it may be left out and
// d_in used in its place.
// out (optional): what forward stored as its out, computed again to the same bits, of in's dtype; needs forward's bias,
// if it had one.
struct LayerNormBackward {
  ConstTensorView in{};  // forward's sum (or in)
  ConstTensorView d_out{};
  ConstTensorView d_residual{};
  ConstTensorView weight{};
  const float* mean = nullptr;
  const float* rstd = nullptr;
  TensorView d_in{};
  TensorView d_delta{};
  TensorView d_weight{};
  TensorView d_bias{};
  ConstTensorView bias{};
  TensorView out{};
  bool add_weight = false, add_bias = false;
  std::int64_t rows = 0, columns = 0;
  Dropout dropout{};  // of delta, as in forward
};

// out[i] = f(in[i]); gelu_new is the tanh form, gelu the exact one. In place allowed.
struct ActivationForward {
  ConstTensorView in{};
  TensorView out{};
  Activation activation = Activation::identity;
};

// d_in[i] = f'(in[i]) * d_out[i]; in is forward's input. d_in may alias d_out.
struct ActivationBackward {
  ConstTensorView in{}, d_out{};
  TensorView d_in{};
  Activation activation = Activation::identity;
};

// out[rows, C] = dropout(in). In place allowed; the backward pass is the same operation on the gradient.
struct DropoutForward {
  ConstTensorView in{};
  TensorView out{};
  Dropout dropout{};
};

// Causal self-attention: for head h of sequence b,
//   P = softmax(Q K^T / sqrt(D)) over keys <= query, dropped out (index of an element within its sample:
//   (h * T + query) * T + key), out = P V.
// P is rounded to the activations' dtype before P V. log_sum_exp is kept for backward.
struct AttentionForward {
  ConstTensorView qkv{};         // [B, T, 3, H, D]
  TensorView out{};              // [B, T, H, D]
  float* log_sum_exp = nullptr;  // [B, H, T]
  std::int64_t batch = 0, length = 0, heads = 0, head_size = 0;
  Dropout dropout{};
};
struct AttentionBackward {
  ConstTensorView qkv{}, out{}, d_out{};
  const float* log_sum_exp = nullptr;
  TensorView d_qkv{};  // [B, T, 3, H, D]
  std::int64_t batch = 0, length = 0, heads = 0, head_size = 0;
  Dropout dropout{};
};

// Causal self-attention of the positions first ... first + length - 1 alone, for decoding step by step: queries, keys
// and values of them and the keys and values of all before them lie in qkv, where one pass after the other has put
// them. out is what AttentionForward without dropout finds for these positions; `capacity` positions of a sequence have
// room.
struct CachedAttention {
  ConstTensorView qkv{};  // [B, capacity, 3, H, D]; positions from first + length on are not read
  TensorView out{};       // [B, length, H, D]
  std::int64_t batch = 0, capacity = 0, first = 0, length = 0, heads = 0, head_size = 0;
};

// losses[r] = log sum exp(logits[r, :V]) - logits[r, target] in nats; target -1: no loss (0), no gradient.
// d_logits (optional, may alias logits) = (softmax - one_hot) * scale; columns V ... stride - 1 of it get 0.
// correct (optional)[r] = 1 if the largest logit (the first of equal ones) is the target's, else 0.
struct CrossEntropy {
  ConstTensorView logits{};               // [rows, stride]
  const std::int32_t* targets = nullptr;  // [rows]
  float* losses = nullptr;                // [rows]
  TensorView d_logits{};                  // [rows, stride]
  std::int32_t* correct = nullptr;        // [rows]
  std::int64_t rows = 0, vocabulary = 0, stride = 0;
  float scale = 1.0F;
};

// losses[r] = mean over columns of (prediction - target)^2; d_prediction = 2 (prediction - target) / columns * scale.
// valid (optional)[r] = 0: no loss, no gradient. d_prediction optional, may alias prediction.
struct SquaredError {
  ConstTensorView prediction{};    // [rows, C]
  const float* targets = nullptr;  // [rows, C]
  const std::int32_t* valid = nullptr;
  float* losses = nullptr;  // [rows]
  TensorView d_prediction{};
  std::int64_t rows = 0, columns = 0;
  float scale = 1.0F;
};

// What a reduction to one number leaves in device memory.
struct Accumulator {
  std::array<std::int64_t, exact_sum_limbs> limbs{};  // of the exact sum of the finite blocks
  std::int64_t not_finite = 0;                        // count of elements that are infinite or NaN
};

// Adds the values (SumValues, fp32, each in double) or the squares (SumSquares: in double over blocks of 128
// elements counted from the view's start, in order of the element within eight interleaved partial sums that
// are added pairwise; the block sums exactly) to the accumulator. Blocks that hold a non-finite element are left
// out of the sum; such elements are counted.
struct SumValues {
  const float* in = nullptr;
  std::int64_t count = 0;
  Accumulator* out = nullptr;
};
struct SumSquares {
  ConstTensorView in{};
  Accumulator* out = nullptr;
};

// acc[i] = (first ? 0 : acc[i]) + sources[0][i] + sources[1][i] + ...: a left fold in fp32, in the order of
// the sources, rounded once on storing. With `first`, the fold starts from sources[0][i] itself. acc may be
// the memory of one of the sources (same dtype).
struct ReduceOnto {
  TensorView acc{};
  std::span<const void* const> sources{};  // the addresses are taken over by Device::run()
  DType source_dtype = DType::f32;
  bool first = true;
};

// What the device has decided of a step's update, in its memory.
struct UpdateDecision {
  float factor = 1.0F;     // multiplies gradients
  std::int32_t apply = 1;  // 0: leave everything as it is
};

// Decides as finish_step (zero/) does on the host, for runs that end with the first step that is not finite.
// sums: of losses and of squares of gradients, over all ranks. With norm = sqrt(squares) * unscale in double:
//   factor = unscale * min(1, clip / (norm + 1e-6)), without the minimum for clip 0; rounded to float;
//   apply = apply so far, and all losses and gradients are finite.
struct DecideUpdate {
  const Accumulator* sums = nullptr;  // [2]
  double unscale = 1.0, clip = 0.0;
  UpdateDecision* out = nullptr;
};

// One step of an optimizer on a piece of a tensor. g = gradient * factor (float).
// decision (optional): in the device's memory; its factor takes the place of `factor`, and where it does not say to
// apply, nothing is written.
// parameter is the master. It, each moment, the gradient and the published copy may each be of any dtype: all are read
// as fp32, and what is stored is rounded once. published (optional): the copy that is computed with, converted from the
// parameter as it is stored, so that whoever converts the master later finds the same bits.
//
// Adam, AdamW (Kingma & Ba 2015; Loshchilov & Hutter 2019), in PyTorch's order of operations:
//   coupled decay: g += weight_decay * p; decoupled: p *= 1 - learning_rate * weight_decay
//   m += (g - m) * (1 - beta1); v = v * beta2 + (g * g) * (1 - beta2)
//   p -= step_size * m / (sqrt(v) / bias_correction2_sqrt + epsilon)
// step_size = learning_rate / (1 - beta1^t) and bias_correction2_sqrt = sqrt(1 - beta2^t) come from double.
// With largest_second_moment (AMSGrad; Reddi, Kale & Kumar 2018): u = max(u, v), and u stands under the root.
struct AdamUpdate {
  TensorView parameter{}, first_moment{}, second_moment{};
  TensorView largest_second_moment{};  // optional
  ConstTensorView gradient{};
  TensorView published{};
  float factor = 1.0F, learning_rate = 0.0F, step_size = 0.0F, bias_correction2_sqrt = 1.0F;
  float beta1 = 0.9F, beta2 = 0.999F;
  float one_minus_beta1 = 0.1F, one_minus_beta2 = 0.001F;  // rounded from double
  float epsilon = 1e-8F, weight_decay = 0.0F;
  bool decoupled = true;
  const UpdateDecision* decision = nullptr;
};
// SGD as in PyTorch: g += weight_decay * p; with a momentum_buffer: b = first_step ? g : momentum * b +
// (1 - dampening) * g, g = nesterov ? g + momentum * b : b; p -= learning_rate * g.
struct SgdUpdate {
  TensorView parameter{};
  TensorView momentum_buffer{};  // optional
  ConstTensorView gradient{};
  TensorView published{};
  float factor = 1.0F, learning_rate = 0.0F, momentum = 0.0F, dampening = 0.0F, weight_decay = 0.0F;
  bool nesterov = false, first_step = false;
  const UpdateDecision* decision = nullptr;
};
// Adagrad (Duchi, Hazan & Singer 2011) as in PyTorch: g += weight_decay * p; s += g * g;
// p -= learning_rate * g / (sqrt(s) + epsilon).
struct AdagradUpdate {
  TensorView parameter{}, sum_of_squares{};
  ConstTensorView gradient{};
  TensorView published{};
  float factor = 1.0F, learning_rate = 0.0F, weight_decay = 0.0F, epsilon = 1e-10F;
  const UpdateDecision* decision = nullptr;
};

// Lion (Chen et al. 2023, algorithm 2), with the sign of 0 being 0: p *= 1 - learning_rate * weight_decay;
// c = m * beta1 + g * (1 - beta1); p -= learning_rate * sign(c); m = m * beta2 + g * (1 - beta2).
struct LionUpdate {
  TensorView parameter{}, momentum{};
  ConstTensorView gradient{};
  TensorView published{};
  float factor = 1.0F, learning_rate = 0.0F;
  float beta1 = 0.9F, beta2 = 0.999F;
  float one_minus_beta1 = 0.1F, one_minus_beta2 = 0.001F;  // rounded from double
  float weight_decay = 0.0F;
  const UpdateDecision* decision = nullptr;
};

// LAMB (You et al. 2020, algorithm 2), in operations between which sums over whole tensors are taken. Of a parameter
// and its moments the direction is
//   u(p, m, v) = (m / bias_correction1) / (sqrt(v / bias_correction2) + epsilon) + weight_decay * p
// with epsilon_inside_root sqrt(v / bias_correction2 + epsilon) in place of the sum; bias_correction = 1 - beta^t,
// or 1.
struct LambDirection {
  float bias_correction1 = 1.0F, bias_correction2 = 1.0F, epsilon = 1e-8F, weight_decay = 0.0F;
  bool epsilon_inside_root = false;
};
// m = m * beta1 + g * (1 - beta1); v = v * beta2 + (g * g) * (1 - beta2); direction = u(p, m, v), before m and v are
// rounded on storing. The parameter is read alone.
struct LambMoments {
  TensorView parameter{}, first_moment{}, second_moment{};
  TensorView direction{};  // fp32
  ConstTensorView gradient{};
  LambDirection rule{};
  float factor = 1.0F, beta1 = 0.9F, beta2 = 0.999F;
  float one_minus_beta1 = 0.1F, one_minus_beta2 = 0.001F;  // rounded from double
  const UpdateDecision* decision = nullptr;
};
// Of each of `count` tensors: out = |p| / |u|, but not below `least` nor above `most`; 1 where one of the two is 0.
// In double, rounded to float.
struct TrustRatios {
  const Accumulator* squares = nullptr;  // [count, 2], of the parameters and of the directions
  float* out = nullptr;                  // [count]
  std::int64_t count = 0;
  double least = 0.01, most = 10.0;
};
// p -= (learning_rate * *trust_ratio) * u(p, m, v). The moments are read alone.
struct LambUpdate {
  TensorView parameter{}, first_moment{}, second_moment{};
  TensorView published{};
  LambDirection rule{};
  float learning_rate = 0.0F;
  const float* trust_ratio = nullptr;
  const UpdateDecision* decision = nullptr;
};

// Muon (Jordan et al. 2024), in operations between which matrices are brought together and made orthogonal by a
// Newton-Schulz iteration of MatMul and Combine.
// m += (g - m) * one_minus_beta; direction = nesterov ? m - (m - g) * one_minus_beta : m, with m before it is rounded
// on storing: as PyTorch's lerp computes it, for beta from 0.5.
struct MuonDirection {
  TensorView momentum{};
  TensorView direction{};  // fp32
  ConstTensorView gradient{};
  float factor = 1.0F, one_minus_beta = 0.05F;
  bool nesterov = true;
  const UpdateDecision* decision = nullptr;
};
// values[i] /= norm + epsilon, norm = sqrt(*squares) in double, rounded to float.
struct DivideByNorm {
  TensorView values{};  // fp32
  const Accumulator* squares = nullptr;
  float epsilon = 1e-7F;
};
// out[i] = alpha * a[i] + beta * b[i], the products rounded, too. out may be the memory of a or b.
struct Combine {
  ConstTensorView a{}, b{};  // fp32
  TensorView out{};          // fp32
  float alpha = 1.0F, beta = 1.0F;
};
// p *= 1 - learning_rate * weight_decay; p -= learning_rate * (scale * direction). Of a decision the factor is not
// used: the direction has it.
struct MuonUpdate {
  TensorView parameter{};
  TensorView published{};
  ConstTensorView direction{};  // fp32
  float learning_rate = 0.0F, scale = 1.0F, weight_decay = 0.0F;
  const UpdateDecision* decision = nullptr;
};

// *out += sum mod 2^64 over elements of mix64(mix64(tensor_index << 40 ^ (first_element + i)) ^ bits of the
// value converted to fp32).
struct Checksum {
  ConstTensorView in{};
  std::uint64_t tensor_index = 0;
  std::int64_t first_element = 0;
  std::uint64_t* out = nullptr;
};

using Operation =
    std::variant<Fill, Cast, Initialize, MatMul, BiasGradient, EmbeddingForward, EmbeddingBackward, LayerNormForward,
                 LayerNormBackward, ActivationForward, ActivationBackward, DropoutForward, AttentionForward,
                 AttentionBackward, CrossEntropy, SquaredError, SumValues, SumSquares, ReduceOnto, DecideUpdate,
                 AdamUpdate, SgdUpdate, AdagradUpdate, Checksum, CachedAttention, LionUpdate, LambMoments, TrustRatios,
                 LambUpdate, MuonDirection, DivideByNorm, Combine, MuonUpdate>;

std::string_view name_of(const Operation& operation);

// The floating-point tensors that an operation writes, for checks that look for the first non-finite value.
std::vector<ConstTensorView> outputs_of(const Operation& operation);

// Multiplications and additions of the operation's matrix products (2 m n k; attention counted causal), else 0.
double product_flops(const Operation& operation);

}  // namespace zt
