#include "device/operations.h"

#include <array>

namespace zt {
namespace {

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

ConstTensorView floats(const float* data, std::int64_t count) {
  // Views that are given out are only read.
  return {data, data == nullptr ? 0 : count, DType::f32};
}

}  // namespace

std::string_view name_of(Activation activation) {
  static constexpr std::array<std::string_view, 6> names = {"identity", "gelu_new", "gelu", "relu", "silu", "tanh"};
  return names.at(static_cast<std::size_t>(activation));
}

std::string_view name_of(const Operation& operation) {
  static constexpr std::array<std::string_view, std::variant_size_v<Operation>> names = {"fill",
                                                                                         "cast",
                                                                                         "initialize",
                                                                                         "matmul",
                                                                                         "bias_gradient",
                                                                                         "embedding_forward",
                                                                                         "embedding_backward",
                                                                                         "layer_norm_forward",
                                                                                         "layer_norm_backward",
                                                                                         "activation_forward",
                                                                                         "activation_backward",
                                                                                         "dropout",
                                                                                         "attention_forward",
                                                                                         "attention_backward",
                                                                                         "cross_entropy",
                                                                                         "squared_error",
                                                                                         "sum_values",
                                                                                         "sum_squares",
                                                                                         "reduce_onto",
                                                                                         "decide_update",
                                                                                         "adam_update",
                                                                                         "sgd_update",
                                                                                         "adagrad_update",
                                                                                         "checksum",
                                                                                         "cached_attention",
                                                                                         "lion_update",
                                                                                         "lamb_moments",
                                                                                         "trust_ratios",
                                                                                         "lamb_update",
                                                                                         "muon_direction",
                                                                                         "divide_by_norm",
                                                                                         "combine",
                                                                                         "muon_update"};
  return names.at(operation.index());
}

std::vector<ConstTensorView> outputs_of(const Operation& operation) {
  using Views = std::vector<ConstTensorView>;
  Views views =
      std::visit(Overloaded{
                     [](const Fill& op) -> Views { return {op.out}; },
                     [](const Cast& op) -> Views { return {op.out}; },
                     [](const Initialize& op) -> Views { return {op.out}; },
                     [](const MatMul& op) -> Views {
                       return {op.out, op.activated};
                     },
                     [](const BiasGradient& op) -> Views { return {op.d_bias}; },
                     [](const EmbeddingForward& op) -> Views { return {op.out}; },
                     [](const EmbeddingBackward& op) -> Views {
                       return {op.d_token_table, op.d_position_table};
                     },
                     [](const LayerNormForward& op) -> Views {
                       return {op.sum, floats(op.mean, op.rows), floats(op.rstd, op.rows), op.out};
                     },
                     [](const LayerNormBackward& op) -> Views {
                       return {op.d_in, op.d_delta, op.d_weight, op.d_bias, op.out};
                     },
                     [](const ActivationForward& op) -> Views { return {op.out}; },
                     [](const ActivationBackward& op) -> Views { return {op.d_in}; },
                     [](const DropoutForward& op) -> Views { return {op.out}; },
                     [](const AttentionForward& op) -> Views {
                       return {op.out, floats(op.log_sum_exp, op.batch * op.heads * op.length)};
                     },
                     [](const AttentionBackward& op) -> Views { return {op.d_qkv}; },
                     [](const CachedAttention& op) -> Views { return {op.out}; },
                     [](const CrossEntropy& op) -> Views {
                       return {floats(op.losses, op.rows), op.d_logits};
                     },
                     [](const SquaredError& op) -> Views {
                       return {floats(op.losses, op.rows), op.d_prediction};
                     },
                     [](const ReduceOnto& op) -> Views { return {op.acc}; },
                     [](const AdamUpdate& op) -> Views {
                       return {op.parameter, op.first_moment, op.second_moment, op.largest_second_moment, op.published};
                     },
                     [](const SgdUpdate& op) -> Views {
                       return {op.parameter, op.momentum_buffer, op.published};
                     },
                     [](const AdagradUpdate& op) -> Views {
                       return {op.parameter, op.sum_of_squares, op.published};
                     },
                     [](const LionUpdate& op) -> Views {
                       return {op.parameter, op.momentum, op.published};
                     },
                     [](const LambMoments& op) -> Views {
                       return {op.first_moment, op.second_moment, op.direction};
                     },
                     [](const TrustRatios& op) -> Views { return {floats(op.out, op.count)}; },
                     [](const LambUpdate& op) -> Views {
                       return {op.parameter, op.published};
                     },
                     [](const MuonDirection& op) -> Views {
                       return {op.momentum, op.direction};
                     },
                     [](const DivideByNorm& op) -> Views { return {op.values}; },
                     [](const Combine& op) -> Views { return {op.out}; },
                     [](const MuonUpdate& op) -> Views {
                       return {op.parameter, op.published};
                     },
                     [](const SumValues&) -> Views { return {}; },
                     [](const DecideUpdate&) -> Views { return {}; },
                     [](const SumSquares&) -> Views { return {}; },
                     [](const Checksum&) -> Views { return {}; },
                 },
                 operation);
  std::erase_if(views, [](const ConstTensorView& view) { return !view || view.count == 0; });
  return views;
}

double product_flops(const Operation& operation) {
  // One product of a causal attention: T (T + 1) / 2 dot products of D elements per head.
  const auto attention = [](const auto& op, double products) {
    const auto length = static_cast<double>(op.length);
    return products * static_cast<double>(op.batch) * static_cast<double>(op.heads) * length * (length + 1) / 2 *
           static_cast<double>(op.head_size) * 2;
  };
  return std::visit(Overloaded{
                        [](const MatMul& op) {
                          return 2.0 * static_cast<double>(op.m) * static_cast<double>(op.n) *
                                 static_cast<double>(op.k);
                        },
                        [&](const AttentionForward& op) { return attention(op, 2); },
                        [&](const AttentionBackward& op) { return attention(op, 5); },
                        [](const CachedAttention& op) {
                          const auto queries = static_cast<double>(op.length);
                          const double keys = queries * static_cast<double>(op.first) + queries * (queries + 1) / 2;
                          return 4.0 * static_cast<double>(op.batch) * static_cast<double>(op.heads) * keys *
                                 static_cast<double>(op.head_size);
                        },
                        [](const auto&) { return 0.0; },
                    },
                    operation);
}

}  // namespace zt
