// The forward pass of the GPT: with loss and what backward needs, or for the scores of the next token.
#include "model/gpt.h"

namespace zt {

void Gpt::forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  const PassContext pass = whole_pass(device, parameters, batch, step, true);
  blocks_forward(pass);
  parameters.release(names_.head_unit);
}

LossView Gpt::evaluate(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  const PassContext pass = whole_pass(device, parameters, batch, step, false);
  blocks_forward(pass);
  const LossView loss = head_loss(pass);
  parameters.release(names_.head_unit);
  return loss;
}

// Everything up to the final norm; the head's unit stays acquired.
void Gpt::blocks_forward(const PassContext& pass) {
  phase_ = in_forward;
  pass.parameters.begin(pass.training ? Pass::training_forward : Pass::inference);
  embedding_forward(pass);
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    const int unit = GptUnits::block(index);
    pass.parameters.acquire(unit);
    if (index == 0) {
      norm_1_forward(pass, index, {}, {});
    } else {
      norm_1_forward(pass, index, blocks_[index - 1].middle, delta_);
    }
    block_forward(pass, index, false);
    pass.parameters.release(unit);
  }
  pass.parameters.acquire(names_.head_unit);
  final_norm_forward(pass);
}

void Gpt::embedding_forward(const PassContext& pass) {
  pass.parameters.acquire(0);
  pass.device.run(
      Stream::compute,
      EmbeddingForward{
          .tokens = pass.batch.tokens,
          .token_table = pass.parameters.parameter(0, names_.token_table),
          .position_table = pass.parameters.parameter(0, names_.position_table)
                                .part(pass.first * settings_.n_embd, pass.length * settings_.n_embd),
          .out = blocks_.front().stream,
          .batch = pass.batch.rows,
          .length = pass.length,
          .columns = settings_.n_embd,
          .vocabulary = settings_.vocab_size,
          .dropout = dropout(pass, settings_.embd_pdrop, drop_embedding, settings_.n_positions * settings_.n_embd)});
  pass.parameters.release(0);
}

void Gpt::norm_1_forward(const PassContext& pass, std::size_t index, ConstTensorView from, ConstTensorView delta) {
  Block& block = blocks_[index];
  const int unit = GptUnits::block(index);
  LayerNormForward norm{.in = from ? from : ConstTensorView(block.stream),
                        .delta = delta,
                        .sum = delta ? block.stream : TensorView{},
                        .weight = parameter(pass, unit, names_.norm_1_weight),
                        .bias = parameter(pass, unit, names_.norm_1_bias),
                        .out = norm_target(norm_),
                        .mean = block.mean_1,
                        .rstd = block.rstd_1,
                        .rows = positions(pass),
                        .columns = settings_.n_embd,
                        .epsilon = static_cast<float>(settings_.layer_norm_epsilon)};
  if (delta) norm.dropout = output_dropout(pass, drop_mlp_output(index - 1));
  pass.device.run(Stream::compute, norm);
  cast_norm(pass, norm_);
}

void Gpt::attention_forward(const PassContext& pass, std::size_t index) {
  const Block& block = blocks_[index];
  const std::int64_t heads = settings_.n_head;
  if (pass.first > 0) {
    pass.device.run(Stream::compute, CachedAttention{.qkv = block.qkv,
                                                     .out = block.attention,
                                                     .batch = pass.batch.rows,
                                                     .capacity = settings_.n_positions,
                                                     .first = pass.first,
                                                     .length = pass.length,
                                                     .heads = heads,
                                                     .head_size = settings_.n_embd / heads});
    return;
  }
  pass.device.run(Stream::compute,
                  AttentionForward{.qkv = block.qkv,
                                   .out = block.attention,
                                   .log_sum_exp = block.log_sum_exp,
                                   .batch = pass.batch.rows,
                                   .length = pass.length,
                                   .heads = heads,
                                   .head_size = settings_.n_embd / heads,
                                   .dropout = dropout(pass, settings_.attn_pdrop, drop_attention_weights(index),
                                                      heads * pass.length * pass.length)});
}

void Gpt::block_forward(const PassContext& pass, std::size_t index, bool recompute) {
  Block& block = blocks_[index];
  Device& device = pass.device;
  const int unit = GptUnits::block(index);
  const std::int64_t C = settings_.n_embd;
  const std::int64_t I = settings_.n_inner;

  linear_forward(device, linear(pass, C, 3 * C), norm_, weight(pass, unit, names_.qkv_weight),
                 parameter(pass, unit, names_.qkv_bias), block.qkv.part(pass.first * 3 * C, positions(pass) * 3 * C));
  attention_forward(pass, index);
  linear_forward(device, linear(pass, C, C), block.attention, weight(pass, unit, names_.attention_weight),
                 parameter(pass, unit, names_.attention_bias), delta_);
  device.run(Stream::compute, LayerNormForward{.in = block.stream,
                                               .delta = delta_,
                                               .sum = block.middle,
                                               .weight = parameter(pass, unit, names_.norm_2_weight),
                                               .bias = parameter(pass, unit, names_.norm_2_bias),
                                               .out = norm_target(norm_),
                                               .mean = block.mean_2,
                                               .rstd = block.rstd_2,
                                               .rows = positions(pass),
                                               .columns = C,
                                               .epsilon = static_cast<float>(settings_.layer_norm_epsilon),
                                               .dropout = output_dropout(pass, drop_attention_output(index))});
  cast_norm(pass, norm_);
  linear_forward(device, linear(pass, C, I), norm_, weight(pass, unit, names_.fc_weight),
                 parameter(pass, unit, names_.fc_bias), block.hidden, activation_,
                 activates() && !recompute ? active_ : TensorView{});
  if (recompute) return;  // the backward pass finds the activation's output itself
  linear_forward(device, linear(pass, I, C), activates() ? active_ : block.hidden,
                 weight(pass, unit, names_.projection_weight), parameter(pass, unit, names_.projection_bias), delta_);
}

void Gpt::final_norm_forward(const PassContext& pass) {
  const int unit = names_.head_unit;
  pass.device.run(Stream::compute,
                  LayerNormForward{.in = blocks_.back().middle,
                                   .delta = delta_,
                                   .sum = final_stream_,
                                   .weight = parameter(pass, unit, names_.final_norm_weight),
                                   .bias = parameter(pass, unit, names_.final_norm_bias),
                                   .out = norm_target(final_norm_),
                                   .mean = final_mean_,
                                   .rstd = final_rstd_,
                                   .rows = positions(pass),
                                   .columns = settings_.n_embd,
                                   .epsilon = static_cast<float>(settings_.layer_norm_epsilon),
                                   .dropout = output_dropout(pass, drop_mlp_output(blocks_.size() - 1))});
  cast_norm(pass, final_norm_);
}

const float* Gpt::next_token_logits(Device& device, ParameterAccess& parameters, const std::int32_t* tokens,
                                    std::int64_t length) {
  const DeviceBatch batch{.rows = 1, .tokens = tokens};
  const StepInfo step{};
  const PassContext pass = whole_pass(device, parameters, batch, step, false);
  blocks_forward(pass);
  return last_logits(pass, length - 1);
}

const float* Gpt::decode(Device& device, ParameterAccess& parameters, const std::int32_t* tokens, std::int64_t first,
                         std::int64_t count) {
  const DeviceBatch batch{.rows = 1, .tokens = tokens};
  const StepInfo step{};
  const PassContext pass{device, parameters, batch, step, false, first, count};
  blocks_forward(pass);
  return last_logits(pass, count - 1);
}

const float* Gpt::last_logits(const PassContext& pass, std::int64_t row) {
  pass.device.run(Stream::compute,
                  MatMul{.a = ConstTensorView(final_norm_).part(row * settings_.n_embd, settings_.n_embd),
                         .b = weight(pass, names_.head_unit, names_.head_weight),
                         .out = {next_token_logits_, settings_.vocab_size, DType::f32},
                         .m = 1,
                         .n = settings_.vocab_size,
                         .k = settings_.n_embd,
                         .lda = settings_.n_embd,
                         .ldb = settings_.n_embd,
                         .ldc = settings_.vocab_size,
                         .transpose_b = true});
  pass.parameters.release(names_.head_unit);
  return next_token_logits_;
}

}  // namespace zt
