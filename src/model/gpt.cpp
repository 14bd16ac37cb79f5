#include "model/gpt.h"

#include <algorithm>

#include "core/random.h"
#include "model/segments.h"

namespace zt {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// How many of `positions` have their logits in memory at once: all, if those take no more than `budget`; else equal
// parts that keep to it. Each part is read once more into the head's gradient, so parts are not made smaller than that
// costs next to nothing. sum_bytes: what the parts' sum takes beside a gradient of 16 bits; where that is more than
// what parts save, there are none.
std::int64_t head_rows(std::int64_t positions, std::int64_t bytes_per_row, std::int64_t sum_bytes) {
  constexpr std::int64_t budget = std::int64_t{128} << 20;
  constexpr std::int64_t fewest = 256;
  const std::int64_t most = std::max(fewest, budget / std::max<std::int64_t>(1, bytes_per_row));
  const std::int64_t parts = (positions + most - 1) / most;
  if (parts <= 1) return positions;
  const std::int64_t rows = round_up((positions + parts - 1) / parts, 16);
  return sum_bytes < (positions - rows) * bytes_per_row ? rows : positions;
}

}  // namespace

Gpt::Gpt(const GptSettings& settings, const std::vector<std::string>& freeze, std::int64_t checkpoint_every,
         const Precision& precision, Device& device, std::int64_t rows, ModelUse use)
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
  if (use == ModelUse::training) {
    allocate_buffers(device, checkpoint_every, rows);
  } else {
    allocate_for_inference(device, rows);
  }
}

// Buffers that outlive the phases of a pass lie side by side, the others in the arena.
void Gpt::allocate_buffers(Device& device, std::int64_t checkpoint_every, std::int64_t rows) {
  const std::int64_t C = settings_.n_embd;
  const auto activations = MemoryCategory::activations;
  const std::int64_t positions = rows * settings_.n_positions;
  const auto stream = [&](const std::string& name) {
    return buffers_.tensor(device, activations, name, positions * C, precision_.activation);
  };
  const auto is_recomputed = [&](std::int64_t index) {
    return checkpoint_every > 0 && (index + 1) % checkpoint_every == 0;
  };
  const std::string shared_name = "h.recomputed";
  const bool recomputes = checkpoint_every > 0 && checkpoint_every <= settings_.n_layer;
  Block recomputed;
  recomputed.recomputed = true;
  keeps_keys_ = !recomputes;
  add_shared_buffers(positions, ModelUse::training);
  if (recomputes) {
    add_tensors(recomputed, shared_name,
                [&](TensorView& view, const std::string& tensor, std::int64_t width, DType dtype) {
                  arena_.add(view, tensor, positions * width, dtype, in_forward | in_block_backward);
                });
  }
  arena_.allocate(device, activations, "shared by the phases of a pass");
  if (recomputes) allocate_statistics(device, recomputed, shared_name, positions);
  for (std::int64_t index = 0; index < settings_.n_layer; ++index) {
    const std::string name = "h." + std::to_string(index);
    blocks_.push_back(is_recomputed(index) ? recomputed : allocate_block(device, name, positions));
    blocks_.back().stream = stream(name + ".input");
  }
  allocate_head(device, positions);
  d_stream_ = stream("gradient.stream");
  d_delta_ = settings_.resid_pdrop > 0.0 ? stream("gradient.sublayer") : d_stream_;
  allocate_cast_weight(device);
}

void Gpt::allocate_for_inference(Device& device, std::int64_t rows) {
  const auto activations = MemoryCategory::activations;
  const std::int64_t positions = rows * settings_.n_positions;
  add_shared_buffers(positions, ModelUse::inference);
  arena_.allocate(device, activations, "shared by the phases of a pass");
  Block shared = allocate_block(device, "h", positions);
  shared.stream = buffers_.tensor(device, activations, "h.input", positions * settings_.n_embd, precision_.activation);
  for (std::int64_t index = 0; index < settings_.n_layer; ++index) {
    blocks_.push_back(shared);
    if (index == 0) continue;
    blocks_.back().qkv = buffers_.tensor(device, activations, "h." + std::to_string(index) + ".attn.qkv",
                                         positions * 3 * settings_.n_embd, precision_.compute);
  }
  allocate_head(device, positions);
  allocate_cast_weight(device);
}

void Gpt::allocate_head(Device& device, std::int64_t positions) {
  const std::int64_t C = settings_.n_embd;
  const auto activations = MemoryCategory::activations;
  final_stream_ = buffers_.tensor(device, activations, "ln_f.input", positions * C, precision_.activation);
  final_norm_ = buffers_.tensor(device, activations, "ln_f.output", positions * C, precision_.compute);
  final_mean_ = buffers_.floats(device, activations, "ln_f.mean", positions);
  final_rstd_ = buffers_.floats(device, activations, "ln_f.rstd", positions);
  losses_ = buffers_.floats(device, activations, "losses", positions);
  next_token_logits_ = buffers_.floats(device, activations, "next_token_logits", settings_.vocab_size);
}

void Gpt::allocate_cast_weight(Device& device) {
  if (!precision_.casts_operands()) return;
  std::int64_t largest = 0;
  for (const UnitSpec& unit : names_.units) {
    for (const TensorSpec& tensor : unit.tensors) largest = std::max(largest, tensor.count());
  }
  cast_weight_ =
      buffers_.tensor(device, MemoryCategory::activations, "weights cast for products", largest, precision_.compute);
}

void Gpt::add_shared_buffers(std::int64_t positions, ModelUse use) {
  const std::int64_t C = settings_.n_embd;
  const std::int64_t I = settings_.n_inner;
  const std::int64_t V = settings_.vocab_size;
  const auto stream = [&](TensorView& view, const char* name, Phases phases) {
    arena_.add(view, name, positions * C, precision_.activation, phases);
  };
  const auto operand = [&](TensorView& view, const char* name, std::int64_t width, Phases phases) {
    arena_.add(view, name, positions * width, precision_.compute, phases);
  };
  logits_stride_ = round_up(V, 16);
  const bool trains = use == ModelUse::training;
  const bool rounds_gradient = trains && precision_.gradient != DType::f32;
  head_rows_ = settings_.head_rows > 0
                   ? std::min(settings_.head_rows, positions)
                   : head_rows(positions, logits_stride_ * static_cast<std::int64_t>(size_of(precision_.compute)),
                               rounds_gradient ? V * C * static_cast<std::int64_t>(sizeof(float)) : 0);
  arena_.add(logits_, "logits", head_rows_ * logits_stride_, precision_.compute, in_head);
  if (head_rows_ < positions && rounds_gradient) {
    arena_.add(d_head_, "gradient.head", V * C, DType::f32, in_head);
  }
  stream(delta_, "sublayer.output", in_forward | in_block_backward);
  operand(norm_, "norm.output.operand", C, in_forward | in_block_backward);
  if (activates()) operand(active_, "mlp.activation", I, in_forward | in_mlp_backward);
  if (!trains) {
    if (precision_.casts_operands()) stream(normed_, "norm.output", in_forward | in_block_backward);
    return;
  }
  stream(d_norm_, "gradient.norm", in_head | in_block_backward);
  operand(d_hidden_, "gradient.hidden", I, in_mlp_backward);
  operand(d_attention_, "gradient.attention", C, in_attention_backward);
  operand(d_qkv_, "gradient.qkv", 3 * C, in_attention_backward);
  if (!precision_.casts_operands()) return;
  stream(normed_, "norm.output", in_forward | in_block_backward);
  operand(d_operand_, "gradient.sublayer.cast", C, in_block_backward);
}

// The large tensors of a block, by add(view, name, width, dtype).
template <typename Add>
void Gpt::add_tensors(Block& block, const std::string& name, const Add& add) const {
  add(block.qkv, name + ".attn.qkv", 3 * settings_.n_embd, precision_.compute);
  add(block.attention, name + ".attn.output", settings_.n_embd, precision_.compute);
  add(block.middle, name + ".ln_2.input", settings_.n_embd, precision_.activation);
  add(block.hidden, name + ".mlp.hidden", settings_.n_inner, precision_.compute);
}

void Gpt::allocate_statistics(Device& device, Block& block, const std::string& name, std::int64_t positions) {
  const auto floats = [&](const char* what, std::int64_t width) {
    return buffers_.floats(device, MemoryCategory::activations, name + what, positions * width);
  };
  block.mean_1 = floats(".ln_1.mean", 1);
  block.rstd_1 = floats(".ln_1.rstd", 1);
  block.mean_2 = floats(".ln_2.mean", 1);
  block.rstd_2 = floats(".ln_2.rstd", 1);
  block.log_sum_exp = floats(".attn.log_sum_exp", settings_.n_head);
}

Gpt::Block Gpt::allocate_block(Device& device, const std::string& name, std::int64_t positions) {
  Block block;
  add_tensors(block, name, [&](TensorView& view, const std::string& tensor, std::int64_t width, DType dtype) {
    view = buffers_.tensor(device, MemoryCategory::activations, tensor, positions * width, dtype);
  });
  allocate_statistics(device, block, name, positions);
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

std::string Gpt::activation_at(const void* address) const {
  const std::string shared = arena_.name_at(address, phase_);
  return shared.empty() ? buffers_.name_at(address) : shared;
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
