#include "model/gpt.h"

#include <algorithm>

#include "core/random.h"
#include "model/segments.h"

namespace zt {

namespace {

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
