// The backward pass of the GPT. d_stream_ holds the gradient of the residual stream, d_delta_ that of what a sub-layer
// added to it.
#include "model/gpt.h"

namespace zt {

void Gpt::backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  const PassContext pass{device, parameters, batch, step, true};
  parameters.begin(Pass::backward);
  head_backward(pass);
  for (std::size_t index = blocks_.size(); index-- > first_trained_block_;) block_backward(pass, index);
  embedding_backward(pass);
}

void Gpt::linear_backward(const PassContext& pass, int unit, int weight, int bias, const Linear& shape,
                          ConstTensorView x, ConstTensorView d_y, TensorView d_x, ConstTensorView before) {
  linear_backward_input(pass.device, shape, this->weight(pass, unit, weight), d_y, d_x, activation_, before);
  linear_backward_weight(pass.device, shape, x, d_y, pass.parameters.gradient(unit, weight));
  if (bias >= 0) linear_backward_bias(pass.device, shape, d_y, pass.parameters.gradient(unit, bias));
}

void Gpt::norm_backward(const PassContext& pass, int unit, int weight, int bias, LayerNormBackward operation) {
  const GradientView d_weight = pass.parameters.gradient(unit, weight);
  operation.weight = parameter(pass, unit, weight);
  operation.d_weight = d_weight.view;
  operation.add_weight = d_weight.add;
  if (bias >= 0) {
    const GradientView d_bias = pass.parameters.gradient(unit, bias);
    operation.d_bias = d_bias.view;
    operation.add_bias = d_bias.add;
  }
  operation.d_out = d_norm_;
  operation.d_in = d_stream_;
  operation.rows = positions(pass);
  operation.columns = settings_.n_embd;
  // Without dropout the gradient of what was added is the stream's own.
  if (operation.dropout.probability > 0.0F) operation.d_delta = d_delta_;
  pass.device.run(Stream::compute, operation);
}

void Gpt::head_backward(const PassContext& pass) {
  const int unit = names_.head_unit;
  const std::int64_t C = settings_.n_embd;
  const std::int64_t V = settings_.vocab_size;
  pass.parameters.acquire(unit);
  pass.device.run(Stream::compute, MatMul{.a = logits_,
                                          .b = weight(pass, unit, names_.head_weight),
                                          .out = d_norm_,
                                          .m = positions(pass),
                                          .n = C,
                                          .k = V,
                                          .lda = logits_stride_,
                                          .ldb = C,
                                          .ldc = C});
  const GradientView d_weight = pass.parameters.gradient(unit, names_.head_weight);
  if (d_weight.view) {
    pass.device.run(Stream::compute, MatMul{.a = logits_,
                                            .b = final_norm_,
                                            .out = d_weight.view,
                                            .m = V,
                                            .n = C,
                                            .k = positions(pass),
                                            .lda = logits_stride_,
                                            .ldb = C,
                                            .ldc = C,
                                            .transpose_a = true,
                                            .add = d_weight.add});
  }
  norm_backward(pass, unit, names_.final_norm_weight, names_.final_norm_bias,
                {.in = final_stream_,
                 .mean = final_mean_,
                 .rstd = final_rstd_,
                 .dropout = output_dropout(pass, drop_mlp_output(blocks_.size() - 1))});
  pass.parameters.release(unit);
  if (!settings_.tie_word_embeddings) pass.parameters.gradients_ready(unit);
}

void Gpt::block_backward(const PassContext& pass, std::size_t index) {
  const Block& block = blocks_[index];
  const int unit = GptUnits::block(index);
  const std::int64_t C = settings_.n_embd;
  const std::int64_t I = settings_.n_inner;
  pass.parameters.acquire(unit);
  if (block.recomputed) {
    norm_1_forward(pass, index, {}, {});
    block_forward(pass, index, true);
  }

  linear_backward(pass, unit, names_.projection_weight, names_.projection_bias, linear(pass, I, C), block.active,
                  d_sublayer(pass), d_hidden_,
                  activation_ == Activation::identity ? ConstTensorView{} : ConstTensorView(block.hidden));
  linear_backward(pass, unit, names_.fc_weight, names_.fc_bias, linear(pass, C, I), block.norm_2, d_hidden_, d_norm_);
  norm_backward(pass, unit, names_.norm_2_weight, names_.norm_2_bias,
                {.in = block.middle,
                 .d_residual = d_stream_,
                 .mean = block.mean_2,
                 .rstd = block.rstd_2,
                 .dropout = output_dropout(pass, drop_attention_output(index))});

  linear_backward(pass, unit, names_.attention_weight, names_.attention_bias, linear(pass, C, C), block.attention,
                  d_sublayer(pass), d_attention_);
  const std::int64_t T = settings_.n_positions;
  pass.device.run(Stream::compute,
                  AttentionBackward{.qkv = block.qkv,
                                    .out = block.attention,
                                    .d_out = d_attention_,
                                    .log_sum_exp = block.log_sum_exp,
                                    .d_qkv = d_qkv_,
                                    .batch = pass.batch.rows,
                                    .length = T,
                                    .heads = settings_.n_head,
                                    .head_size = C / settings_.n_head,
                                    .dropout = dropout(pass, settings_.attn_pdrop, drop_attention_weights(index),
                                                       settings_.n_head * T * T)});
  linear_backward(pass, unit, names_.qkv_weight, names_.qkv_bias, linear(pass, C, 3 * C), block.norm_1, d_qkv_,
                  d_norm_);
  norm_backward(pass, unit, names_.norm_1_weight, names_.norm_1_bias,
                {.in = block.stream,
                 .d_residual = d_stream_,
                 .mean = block.mean_1,
                 .rstd = block.rstd_1,
                 .dropout = index == 0 ? Dropout{} : output_dropout(pass, drop_mlp_output(index - 1))});
  pass.parameters.release(unit);
  pass.parameters.gradients_ready(unit);
}

void Gpt::embedding_backward(const PassContext& pass) {
  if (trains_embeddings_) {
    const GradientView d_tokens = pass.parameters.gradient(0, names_.token_table);
    const GradientView d_positions = pass.parameters.gradient(0, names_.position_table);
    pass.device.run(Stream::compute, EmbeddingBackward{.tokens = pass.batch.tokens,
                                                       .d_out = d_stream_,
                                                       .d_token_table = d_tokens.view,
                                                       .d_position_table = d_positions.view,
                                                       .add_token = d_tokens.add,
                                                       .add_position = d_positions.add,
                                                       .batch = pass.batch.rows,
                                                       .length = settings_.n_positions,
                                                       .columns = settings_.n_embd,
                                                       .vocabulary = settings_.vocab_size,
                                                       .positions = settings_.n_positions,
                                                       .dropout = dropout(pass, settings_.embd_pdrop, drop_embedding,
                                                                          settings_.n_positions * settings_.n_embd)});
  }
  pass.parameters.gradients_ready(0);
}

}  // namespace zt
