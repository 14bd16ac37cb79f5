#include "model/gpt_units.h"

#include <cmath>
#include <utility>

namespace zt {

namespace {

// Collects a unit's tensors and says at which index each stands.
class UnitBuilder {
 public:
  UnitBuilder(std::string name, bool biases) : biases_(biases) { unit_.name = std::move(name); }

  // Tables of embeddings, and the head.
  int table(const std::string& name, std::int64_t rows, std::int64_t columns, double deviation) {
    return add({name,
                {rows, columns},
                Segment::matrices,
                Distribution::normal,
                static_cast<float>(deviation),
                TensorKind::matrix});
  }
  int matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs, double deviation) {
    const int index = table(name, outputs, inputs, deviation);
    unit_.tensors.back().hidden = true;
    return index;
  }
  int norm_weight(const std::string& name, std::int64_t count) {
    return add({name, {count}, Segment::vectors, Distribution::constant, 1.0F, TensorKind::norm});
  }
  int norm_bias(const std::string& name, std::int64_t count) {
    return biases_ ? add({name, {count}, Segment::vectors, Distribution::constant, 0.0F, TensorKind::norm}) : -1;
  }
  int bias(const std::string& name, std::int64_t count) {
    return biases_ ? add({name, {count}, Segment::vectors, Distribution::constant, 0.0F, TensorKind::bias}) : -1;
  }
  UnitSpec take() { return std::move(unit_); }

 private:
  int add(TensorSpec tensor) {
    unit_.tensors.push_back(std::move(tensor));
    return static_cast<int>(unit_.tensors.size()) - 1;
  }
  UnitSpec unit_;
  bool biases_;
};

}  // namespace

GptUnits gpt_units(const GptSettings& settings) {
  const std::int64_t C = settings.n_embd;
  const std::int64_t I = settings.n_inner > 0 ? settings.n_inner : 4 * C;
  const std::int64_t V = settings.vocab_size;
  const double deviation = settings.initializer_range;
  // What writes to the residual stream starts smaller by 1 / sqrt(2 n_layer) (Radford et al. 2019, section 2.3).
  const double residual_deviation = deviation / std::sqrt(2.0 * static_cast<double>(settings.n_layer));
  const bool tied = settings.tie_word_embeddings;

  GptUnits gpt;
  const auto add_final_norm = [&](UnitBuilder& builder) {
    gpt.final_norm_weight = builder.norm_weight("ln_f.weight", C);
    gpt.final_norm_bias = builder.norm_bias("ln_f.bias", C);
  };
  UnitBuilder embedding("embedding", settings.bias);
  gpt.token_table = embedding.table("wte.weight", V, C, deviation);
  gpt.position_table = embedding.table("wpe.weight", settings.n_positions, C, deviation);
  if (tied) add_final_norm(embedding);
  gpt.units.push_back(embedding.take());
  gpt.units.back().spans_pass = tied;

  for (std::int64_t index = 0; index < settings.n_layer; ++index) {
    const std::string h = "h." + std::to_string(index);
    UnitBuilder block(h, settings.bias);
    gpt.qkv_weight = block.matrix(h + ".attn.c_attn.weight", 3 * C, C, deviation);
    gpt.attention_weight = block.matrix(h + ".attn.c_proj.weight", C, C, residual_deviation);
    gpt.fc_weight = block.matrix(h + ".mlp.c_fc.weight", I, C, deviation);
    gpt.projection_weight = block.matrix(h + ".mlp.c_proj.weight", C, I, residual_deviation);
    gpt.norm_1_weight = block.norm_weight(h + ".ln_1.weight", C);
    gpt.norm_1_bias = block.norm_bias(h + ".ln_1.bias", C);
    gpt.qkv_bias = block.bias(h + ".attn.c_attn.bias", 3 * C);
    gpt.attention_bias = block.bias(h + ".attn.c_proj.bias", C);
    gpt.norm_2_weight = block.norm_weight(h + ".ln_2.weight", C);
    gpt.norm_2_bias = block.norm_bias(h + ".ln_2.bias", C);
    gpt.fc_bias = block.bias(h + ".mlp.c_fc.bias", I);
    gpt.projection_bias = block.bias(h + ".mlp.c_proj.bias", C);
    gpt.units.push_back(block.take());
  }

  gpt.head_weight = gpt.token_table;
  if (!tied) {
    UnitBuilder head("head", settings.bias);
    gpt.head_weight = head.table("lm_head.weight", V, C, deviation);
    add_final_norm(head);
    gpt.units.push_back(head.take());
    gpt.head_unit = static_cast<int>(gpt.units.size()) - 1;
  }
  return gpt;
}

}  // namespace zt
