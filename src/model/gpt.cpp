#include "model/gpt.h"

#include <algorithm>

#include "core/random.h"
#include "model/segments.h"

namespace zt {

namespace {

// Numbers of the operations that drop out, for the keys of their draws.
constexpr std::int64_t drop_embedding = 0;
constexpr std::int64_t drop_attention_weights(std::size_t block) { return 1 + 3 * static_cast<std::int64_t>(block); }
constexpr std::int64_t drop_attention_output(std::size_t block) { return 2 + 3 * static_cast<std::int64_t>(block); }
constexpr std::int64_t drop_mlp_output(std::size_t block) { return 3 + 3 * static_cast<std::int64_t>(block); }

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Gpt::Gpt(const GptSettings& settings, const std::vector<std::string>& freeze, std::int64_t checkpoint_every,
         const Precision& precision, Device& device, std::int64_t rows)
    : settings_(settings),
      precision_(precision),
      activation_(activation_from_name(settings.activation_function)),
      names_(gpt_units(settings)) {
  if (settings_.n_inner == 0) settings_.n_inner = 4 * settings_.n_embd;
  assign_segments(names_.units, precision, freeze);
  const auto trained = [&](int unit, int tensor) {
    return is_trained(
        names_.units.at(static_cast<std::size_t>(unit)).tensors.at(static_cast<std::size_t>(tensor)).segment);
  };
  const auto layers = static_cast<std::size_t>(settings_.n_layer);
  trains_embeddings_ = trained(0, names_.token_table) || trained(0, names_.position_table);
  if (!trains_embeddings_) {
    while (first_trained_block_ < layers &&
           !trains(names_.units[static_cast<std::size_t>(GptUnits::block(first_trained_block_))])) {
      ++first_trained_block_;
    }
  }

  forward_order_ = {0};
  for (std::size_t index = 0; index < layers; ++index) forward_order_.push_back(GptUnits::block(index));
  forward_order_.push_back(names_.head_unit);
  // Going back, the embedding's look-up needs no values, nor does what nothing trained lies below of.
  backward_order_.assign(forward_order_.rbegin(),
                         forward_order_.rend() - 1 - static_cast<std::ptrdiff_t>(first_trained_block_));
  allocate_buffers(device, checkpoint_every, rows);
}

void Gpt::allocate_buffers(Device& device, std::int64_t checkpoint_every, std::int64_t rows) {
  const std::int64_t C = settings_.n_embd;
  const auto activations = MemoryCategory::activations;
  const std::int64_t positions = rows * settings_.n_positions;
  const auto stream = [&](const std::string& name) {
    return buffers_.tensor(device, activations, name, positions * C, precision_.activation);
  };
  const auto operand = [&](const std::string& name, std::int64_t width) {
    return buffers_.tensor(device, activations, name, positions * width, precision_.compute);
  };
  Block recomputed;
  for (std::size_t index = 0; index < static_cast<std::size_t>(settings_.n_layer); ++index) {
    const std::string name = "h." + std::to_string(index);
    if (checkpoint_every > 0 && (static_cast<std::int64_t>(index) + 1) % checkpoint_every == 0) {
      if (!recomputed.recomputed) recomputed = allocate_block(device, "h.recomputed", rows);
      recomputed.recomputed = true;
      blocks_.push_back(recomputed);
    } else {
      blocks_.push_back(allocate_block(device, name, rows));
    }
    blocks_.back().stream = stream(name + ".input");
  }
  final_stream_ = stream("ln_f.input");
  final_norm_ = operand("ln_f.output", C);
  final_mean_ = buffers_.floats(device, activations, "ln_f.mean", positions);
  final_rstd_ = buffers_.floats(device, activations, "ln_f.rstd", positions);
  logits_stride_ = round_up(settings_.vocab_size, 16);
  logits_ = operand("logits", logits_stride_);
  losses_ = buffers_.floats(device, activations, "losses", positions);
  next_token_logits_ = buffers_.floats(device, activations, "next_token_logits", settings_.vocab_size);
  delta_ = stream("sublayer.output");
  d_stream_ = stream("gradient.stream");
  d_norm_ = stream("gradient.norm");
  d_delta_ = settings_.resid_pdrop > 0.0 ? stream("gradient.sublayer") : d_stream_;
  d_attention_ = operand("gradient.attention", C);
  d_qkv_ = operand("gradient.qkv", 3 * C);
  d_hidden_ = operand("gradient.hidden", settings_.n_inner);
  if (!precision_.casts_operands()) return;
  normed_ = stream("norm.output");
  d_operand_ = operand("gradient.sublayer.cast", C);
  std::int64_t largest = 0;
  for (const UnitSpec& unit : names_.units) {
    for (const TensorSpec& tensor : unit.tensors) largest = std::max(largest, tensor.count());
  }
  cast_weight_ = buffers_.tensor(device, activations, "weights cast for products", largest, precision_.compute);
}

Gpt::Block Gpt::allocate_block(Device& device, const std::string& name, std::int64_t rows) {
  const std::int64_t positions = rows * settings_.n_positions;
  const auto activations = MemoryCategory::activations;
  const auto wide = [&](const char* what, std::int64_t width) {
    return buffers_.tensor(device, activations, name + what, positions * width, precision_.compute);
  };
  Block block;
  block.norm_1 = wide(".ln_1.output", settings_.n_embd);
  block.qkv = wide(".attn.qkv", 3 * settings_.n_embd);
  block.attention = wide(".attn.output", settings_.n_embd);
  block.middle =
      buffers_.tensor(device, activations, name + ".ln_2.input", positions * settings_.n_embd, precision_.activation);
  block.norm_2 = wide(".ln_2.output", settings_.n_embd);
  block.hidden = wide(".mlp.hidden", settings_.n_inner);
  block.active = activation_ == Activation::identity ? block.hidden : wide(".mlp.activation", settings_.n_inner);
  block.mean_1 = buffers_.floats(device, activations, name + ".ln_1.mean", positions);
  block.rstd_1 = buffers_.floats(device, activations, name + ".ln_1.rstd", positions);
  block.mean_2 = buffers_.floats(device, activations, name + ".ln_2.mean", positions);
  block.rstd_2 = buffers_.floats(device, activations, name + ".ln_2.rstd", positions);
  block.log_sum_exp = buffers_.floats(device, activations, name + ".attn.log_sum_exp", positions * settings_.n_head);
  return block;
}

void Gpt::cast_norm(const PassContext& pass, TensorView operand) const {
  if (!normed_) return;
  const std::int64_t count = positions(pass) * settings_.n_embd;
  pass.device.run(Stream::compute, Cast{.in = normed_.part(0, count), .out = operand.part(0, count)});
}

ConstTensorView Gpt::d_sublayer(const PassContext& pass) const {
  return as_operand(pass.device, d_delta_.part(0, positions(pass) * settings_.n_embd), d_operand_);
}

const std::vector<int>& Gpt::order(Pass pass) const {
  return pass == Pass::backward ? backward_order_ : forward_order_;
}

Dropout Gpt::dropout(const PassContext& pass, double probability, std::int64_t operation, std::int64_t elements) const {
  if (!pass.training || probability == 0.0) return {};
  const auto step_key = derive_key(derive_key(pass.step.seed, "dropout"), static_cast<std::uint64_t>(pass.step.step));
  return {static_cast<float>(probability), derive_key(step_key, static_cast<std::uint64_t>(operation)),
          pass.batch.first_sample, elements};
}

Dropout Gpt::output_dropout(const PassContext& pass, std::int64_t operation) const {
  return dropout(pass, settings_.resid_pdrop, operation, settings_.n_positions * settings_.n_embd);
}

LossView Gpt::forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step,
                      bool training) {
  const PassContext pass{device, parameters, batch, step, training};
  blocks_forward(pass);
  const std::int64_t V = settings_.vocab_size;
  device.run(Stream::compute, MatMul{.a = final_norm_,
                                     .b = weight(pass, names_.head_unit, names_.head_weight),
                                     .out = logits_,
                                     .m = positions(pass),
                                     .n = V,
                                     .k = settings_.n_embd,
                                     .lda = settings_.n_embd,
                                     .ldb = settings_.n_embd,
                                     .ldc = logits_stride_,
                                     .transpose_b = true});
  parameters.release(names_.head_unit);
  device.run(Stream::compute, CrossEntropy{.logits = logits_,
                                           .targets = batch.targets,
                                           .losses = losses_,
                                           .d_logits = training ? logits_ : TensorView{},
                                           .rows = positions(pass),
                                           .vocabulary = V,
                                           .stride = logits_stride_,
                                           .scale = step.gradient_scale});
  return {losses_, nullptr, positions(pass)};
}

// Everything up to the final norm; the head's unit stays acquired.
void Gpt::blocks_forward(const PassContext& pass) {
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
  pass.device.run(Stream::compute,
                  EmbeddingForward{.tokens = pass.batch.tokens,
                                   .token_table = pass.parameters.parameter(0, names_.token_table),
                                   .position_table = pass.parameters.parameter(0, names_.position_table),
                                   .out = blocks_.front().stream,
                                   .batch = pass.batch.rows,
                                   .length = settings_.n_positions,
                                   .columns = settings_.n_embd,
                                   .vocabulary = settings_.vocab_size,
                                   .dropout = dropout(pass, settings_.embd_pdrop, drop_embedding,
                                                      settings_.n_positions * settings_.n_embd)});
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
                        .out = norm_target(block.norm_1),
                        .mean = block.mean_1,
                        .rstd = block.rstd_1,
                        .rows = positions(pass),
                        .columns = settings_.n_embd,
                        .epsilon = static_cast<float>(settings_.layer_norm_epsilon)};
  if (delta) norm.dropout = output_dropout(pass, drop_mlp_output(index - 1));
  pass.device.run(Stream::compute, norm);
  cast_norm(pass, block.norm_1);
}

void Gpt::block_forward(const PassContext& pass, std::size_t index, bool recompute) {
  Block& block = blocks_[index];
  Device& device = pass.device;
  const int unit = GptUnits::block(index);
  const std::int64_t C = settings_.n_embd;
  const std::int64_t I = settings_.n_inner;
  const std::int64_t T = settings_.n_positions;

  linear_forward(device, linear(pass, C, 3 * C), block.norm_1, weight(pass, unit, names_.qkv_weight),
                 parameter(pass, unit, names_.qkv_bias), block.qkv);
  device.run(Stream::compute,
             AttentionForward{.qkv = block.qkv,
                              .out = block.attention,
                              .log_sum_exp = block.log_sum_exp,
                              .batch = pass.batch.rows,
                              .length = T,
                              .heads = settings_.n_head,
                              .head_size = C / settings_.n_head,
                              .dropout = dropout(pass, settings_.attn_pdrop, drop_attention_weights(index),
                                                 settings_.n_head * T * T)});
  linear_forward(device, linear(pass, C, C), block.attention, weight(pass, unit, names_.attention_weight),
                 parameter(pass, unit, names_.attention_bias), delta_);
  device.run(Stream::compute, LayerNormForward{.in = block.stream,
                                               .delta = delta_,
                                               .sum = block.middle,
                                               .weight = parameter(pass, unit, names_.norm_2_weight),
                                               .bias = parameter(pass, unit, names_.norm_2_bias),
                                               .out = norm_target(block.norm_2),
                                               .mean = block.mean_2,
                                               .rstd = block.rstd_2,
                                               .rows = positions(pass),
                                               .columns = C,
                                               .epsilon = static_cast<float>(settings_.layer_norm_epsilon),
                                               .dropout = output_dropout(pass, drop_attention_output(index))});
  cast_norm(pass, block.norm_2);
  linear_forward(device, linear(pass, C, I), block.norm_2, weight(pass, unit, names_.fc_weight),
                 parameter(pass, unit, names_.fc_bias), block.hidden);
  if (activation_ != Activation::identity) {
    const std::int64_t count = positions(pass) * I;
    device.run(Stream::compute,
               ActivationForward{
                   .in = block.hidden.part(0, count), .out = block.active.part(0, count), .activation = activation_});
  }
  if (recompute) return;
  linear_forward(device, linear(pass, I, C), block.active, weight(pass, unit, names_.projection_weight),
                 parameter(pass, unit, names_.projection_bias), delta_);
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
  const PassContext pass{device, parameters, batch, step, false};
  blocks_forward(pass);
  device.run(Stream::compute,
             MatMul{.a = ConstTensorView(final_norm_).part((length - 1) * settings_.n_embd, settings_.n_embd),
                    .b = weight(pass, names_.head_unit, names_.head_weight),
                    .out = {next_token_logits_, settings_.vocab_size, DType::f32},
                    .m = 1,
                    .n = settings_.vocab_size,
                    .k = settings_.n_embd,
                    .lda = settings_.n_embd,
                    .ldb = settings_.n_embd,
                    .ldc = settings_.vocab_size,
                    .transpose_b = true});
  parameters.release(names_.head_unit);
  return next_token_logits_;
}

// Going back. d_stream_ holds the gradient of the residual stream, d_delta_ that of what a sub-layer added to it.

void Gpt::backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  const PassContext pass{device, parameters, batch, step, true};
  parameters.begin(Pass::backward);
  head_backward(pass);
  for (std::size_t index = blocks_.size(); index-- > first_trained_block_;) block_backward(pass, index);
  embedding_backward(pass);
}

void Gpt::linear_backward(const PassContext& pass, int unit, int weight, int bias, const Linear& shape,
                          ConstTensorView x, ConstTensorView d_y, TensorView d_x) {
  linear_backward_input(pass.device, shape, this->weight(pass, unit, weight), d_y, d_x);
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
                  d_sublayer(pass), d_hidden_);
  if (activation_ != Activation::identity) {
    const TensorView d_hidden = d_hidden_.part(0, positions(pass) * I);
    pass.device.run(Stream::compute, ActivationBackward{.in = block.hidden.part(0, positions(pass) * I),
                                                        .d_out = d_hidden,
                                                        .d_in = d_hidden,
                                                        .activation = activation_});
  }
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

double Gpt::flops_per_row() const {
  const auto C = static_cast<double>(settings_.n_embd);
  const auto T = static_cast<double>(settings_.n_positions);
  double products = 0.0;
  for (std::size_t index = 0; index < blocks_.size(); ++index) {
    const UnitSpec& unit = names_.units[static_cast<std::size_t>(GptUnits::block(index))];
    for (const TensorSpec& tensor : unit.tensors) {
      if (tensor.kind != TensorKind::matrix) continue;
      products +=
          static_cast<double>(tensor.count()) * product_flops_per_parameter(tensor, index >= first_trained_block_);
    }
  }
  const TensorSpec& head =
      names_.units[static_cast<std::size_t>(names_.head_unit)].tensors[static_cast<std::size_t>(names_.head_weight)];
  products += static_cast<double>(head.count()) * product_flops_per_parameter(head, true);
  // Causal attention: two products of 2 C flops for each of T (T + 1) / 2 pairs forward, twice that backward.
  const double forward = static_cast<double>(settings_.n_layer) * 2.0 * C * T * (T + 1.0);
  const double backward = 2.0 * static_cast<double>(blocks_.size() - first_trained_block_) * 2.0 * C * T * (T + 1.0);
  return products * T + forward + backward;
}

}  // namespace zt
