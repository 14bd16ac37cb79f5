// The backward pass of the GPT. d_stream_ holds the gradient of the residual stream, d_delta_ that of what a sub-layer
// added to it.
#include <algorithm>

#include "model/gpt.h"

namespace zt {

LossView Gpt::backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  const PassContext pass = whole_pass(device, parameters, batch, step, true);
  parameters.begin(Pass::backward);
  parameters.acquire(names_.head_unit);
  const LossView loss = head_loss(pass);
  head_backward(pass);
  for (std::size_t index = blocks_.size(); index-- > first_trained_block_;) block_backward(pass, index);
  embedding_backward(pass);
  return loss;
}

void Gpt::linear_backward_parameters(const PassContext& pass, int unit, int weight, int bias, const Linear& shape,
                                     ConstTensorView x, ConstTensorView d_y) {
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
    operation.bias = parameter(pass, unit, bias);
  }
  operation.d_out = d_norm_;
  operation.d_in = d_stream_;
  operation.rows = positions(pass);
  operation.columns = settings_.n_embd;
  // Without dropout the gradient of what was added is the stream's own.
  if (operation.dropout.probability > 0.0F) operation.d_delta = d_delta_;
  pass.device.run(Stream::compute, operation);
}

LossView Gpt::head_loss(const PassContext& pass) {
  phase_ = in_head;
  const int unit = names_.head_unit;
  const std::int64_t C = settings_.n_embd;
  const std::int64_t V = settings_.vocab_size;
  const std::int64_t all = positions(pass);
  const ConstTensorView head = weight(pass, unit, names_.head_weight);
  const GradientView d_weight = pass.training ? pass.parameters.gradient(unit, names_.head_weight) : GradientView{};
  // What the parts add up to is rounded once.
  const GradientView d_head = d_head_ && all > head_rows_ && d_weight.view ? GradientView{d_head_, false} : d_weight;
  for (std::int64_t first = 0; first < all; first += head_rows_) {
    const std::int64_t rows = std::min(head_rows_, all - first);
    const TensorView x = final_norm_.part(first * C, rows * C);
    pass.device.run(Stream::compute, MatMul{.a = x,
                                            .b = head,
                                            .out = logits_,
                                            .m = rows,
                                            .n = V,
                                            .k = C,
                                            .lda = C,
                                            .ldb = C,
                                            .ldc = logits_stride_,
                                            .transpose_b = true});
    pass.device.run(Stream::compute, CrossEntropy{.logits = logits_,
                                                  .targets = pass.batch.targets + first,
                                                  .losses = losses_ + first,
                                                  .d_logits = pass.training ? logits_ : TensorView{},
                                                  .rows = rows,
                                                  .vocabulary = V,
                                                  .stride = logits_stride_,
                                                  .scale = pass.step.gradient_scale});
    if (!pass.training) continue;
    pass.device.run(Stream::compute, MatMul{.a = logits_,
                                            .b = head,
                                            .out = d_norm_.part(first * C, rows * C),
                                            .m = rows,
                                            .n = C,
                                            .k = V,
                                            .lda = logits_stride_,
                                            .ldb = C,
                                            .ldc = C});
    if (!d_head.view) continue;
    pass.device.run(Stream::compute, MatMul{.a = logits_,
                                            .b = x,
                                            .out = d_head.view,
                                            .m = V,
                                            .n = C,
                                            .k = rows,
                                            .lda = logits_stride_,
                                            .ldb = C,
                                            .ldc = C,
                                            .transpose_a = true,
                                            .add = d_head.add || first > 0});
  }
  if (d_head.view.data != d_weight.view.data) {
    const void* const sum = d_head.view.data;
    pass.device.run(
        Stream::compute,
        ReduceOnto{.acc = d_weight.view, .sources = {&sum, 1}, .source_dtype = DType::f32, .first = !d_weight.add});
  }
  return {losses_, nullptr, all};
}

void Gpt::head_backward(const PassContext& pass) {
  const int unit = names_.head_unit;
  norm_backward(pass, unit, names_.final_norm_weight, names_.final_norm_bias,
                {.in = final_stream_,
                 .mean = final_mean_,
                 .rstd = final_rstd_,
                 .dropout = output_dropout(pass, drop_mlp_output(blocks_.size() - 1))});
  pass.parameters.release(unit);
  if (!settings_.tie_word_embeddings) pass.parameters.gradients_ready(unit);
}

void Gpt::block_backward(const PassContext& pass, std::size_t index) {
  const int unit = GptUnits::block(index);
  phase_ = in_mlp_backward;
  pass.parameters.acquire(unit);
  if (blocks_[index].recomputed) {
    norm_1_forward(pass, index, {}, {});
    block_forward(pass, index, true);
  }
  mlp_backward(pass, index);
  phase_ = in_attention_backward;
  attention_backward(pass, index);
  pass.parameters.release(unit);
  pass.parameters.gradients_ready(unit);
}

// The weight's gradient of a layer that reads a norm's output follows the norm's backward pass, which computes that
// output again.
void Gpt::mlp_backward(const PassContext& pass, std::size_t index) {
  const Block& block = blocks_[index];
  const int unit = GptUnits::block(index);
  const std::int64_t C = settings_.n_embd;
  const std::int64_t I = settings_.n_inner;
  const Linear projection = linear(pass, I, C);
  const Linear fc = linear(pass, C, I);
  const ConstTensorView d_y = d_sublayer(pass);
  linear_backward_input(pass.device, projection, weight(pass, unit, names_.projection_weight), d_y, d_hidden_,
                        activation_, activates() ? ConstTensorView(block.hidden) : ConstTensorView{}, active_);
  linear_backward_parameters(pass, unit, names_.projection_weight, names_.projection_bias, projection,
                             activates() ? active_ : block.hidden, d_y);
  linear_backward_input(pass.device, fc, weight(pass, unit, names_.fc_weight), d_hidden_, d_norm_);
  norm_backward(pass, unit, names_.norm_2_weight, names_.norm_2_bias,
                {.in = block.middle,
                 .d_residual = d_stream_,
                 .mean = block.mean_2,
                 .rstd = block.rstd_2,
                 .out = norm_target(norm_),
                 .dropout = output_dropout(pass, drop_attention_output(index))});
  cast_norm(pass, norm_);
  linear_backward_parameters(pass, unit, names_.fc_weight, names_.fc_bias, fc, norm_, d_hidden_);
}

void Gpt::attention_backward(const PassContext& pass, std::size_t index) {
  const Block& block = blocks_[index];
  const int unit = GptUnits::block(index);
  const std::int64_t C = settings_.n_embd;
  const std::int64_t T = settings_.n_positions;
  const Linear output = linear(pass, C, C);
  const Linear qkv = linear(pass, C, 3 * C);
  const ConstTensorView d_y = d_sublayer(pass);
  linear_backward_input(pass.device, output, weight(pass, unit, names_.attention_weight), d_y, d_attention_);
  linear_backward_parameters(pass, unit, names_.attention_weight, names_.attention_bias, output, block.attention, d_y);
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
  linear_backward_input(pass.device, qkv, weight(pass, unit, names_.qkv_weight), d_qkv_, d_norm_);
  norm_backward(pass, unit, names_.norm_1_weight, names_.norm_1_bias,
                {.in = block.stream,
                 .d_residual = d_stream_,
                 .mean = block.mean_1,
                 .rstd = block.rstd_1,
                 .out = norm_target(norm_),
                 .dropout = index == 0 ? Dropout{} : output_dropout(pass, drop_mlp_output(index - 1))});
  cast_norm(pass, norm_);
  linear_backward_parameters(pass, unit, names_.qkv_weight, names_.qkv_bias, qkv, norm_, d_qkv_);
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
