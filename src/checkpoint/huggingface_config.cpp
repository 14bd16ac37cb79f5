#include "checkpoint/huggingface_config.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/errors.h"
#include "core/json.h"
#include "data/message_text.h"

namespace zt {
namespace {

// Names of activations in the library, and ours for the same function.
constexpr std::array<std::pair<const char*, const char*>, 9> activations = {{{"gelu_new", "gelu_new"},
                                                                             {"gelu_pytorch_tanh", "gelu_new"},
                                                                             {"gelu_fast", "gelu_new"},
                                                                             {"gelu_accurate", "gelu_new"},
                                                                             {"gelu", "gelu"},
                                                                             {"gelu_python", "gelu"},
                                                                             {"relu", "relu"},
                                                                             {"silu", "silu"},
                                                                             {"swish", "silu"}}};

class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& config, const std::string& path) : config_(config), path_(path) {}

  [[noreturn]] void fail(const std::string& key, const std::string& reason) const {
    throw UserError(shown_path(path_) + ": " + key + ": " + reason);
  }
  // As the file has it; long values are cut.
  std::string found(const std::string& key) const {
    return config_.contains(key) ? shown(config_.at(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
                                 : "nothing";
  }
  bool is_set(const std::string& key) const { return config_.contains(key) && !config_.at(key).is_null(); }

  std::int64_t integer(const std::string& key, std::int64_t standard, std::int64_t most) const {
    if (!is_set(key)) return standard;
    const nlohmann::json& value = config_.at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < 1 ||
        value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
      fail(key, "found " + found(key) + "; it must be a whole number from 1 to " + std::to_string(most));
    }
    return value.get<std::int64_t>();
  }
  double number(const std::string& key, double standard, double least, double most) const {
    if (!is_set(key)) return standard;
    const nlohmann::json& value = config_.at(key);
    if (!value.is_number() || !(value.get<double>() >= least && value.get<double>() <= most)) {
      fail(key, "found " + found(key) + "; it must be a number from " + shown(least) + " to " + shown(most));
    }
    return value.get<double>();
  }
  bool boolean(const std::string& key, bool standard) const {
    if (!is_set(key)) return standard;
    if (!config_.at(key).is_boolean()) fail(key, "found " + found(key) + "; it must be true or false");
    return config_.at(key).get<bool>();
  }
  std::string text(const std::string& key, const std::string& standard) const {
    if (!is_set(key)) return standard;
    if (!config_.at(key).is_string()) fail(key, "found " + found(key) + "; it must be a text");
    return config_.at(key).get<std::string>();
  }

 private:
  const nlohmann::json& config_;
  const std::string& path_;
};

std::string our_activation(const ConfigReader& reader) {
  const std::string name = reader.text("activation_function", "gelu_new");
  for (const auto& [theirs, ours] : activations) {
    if (name == theirs) return ours;
  }
  reader.fail("activation_function",
              "found \"" + shown(name) +
                  "\"; here there are gelu_new (also as gelu_pytorch_tanh, gelu_fast), gelu, relu, silu");
}

}  // namespace

ModelSettings model_of_huggingface_config(const nlohmann::json& config, const std::string& path) {
  const ConfigReader reader(config, path);
  if (const std::string type = reader.text("model_type", ""); type != "gpt2") {
    reader.fail("model_type", "found " + reader.found("model_type") + "; only \"gpt2\" can be read");
  }
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "add_cross_attention", "is_encoder_decoder"}) {
    if (reader.boolean(key, false)) reader.fail(key, "is true, which the GPT of this program does not compute");
  }
  if (!reader.boolean("scale_attn_weights", true)) {
    reader.fail("scale_attn_weights", "is false, which the GPT of this program does not compute");
  }
  ModelSettings model;
  model.type = "gpt";
  GptSettings& gpt = model.gpt;
  gpt.n_layer = reader.integer("n_layer", 12, 10000);
  gpt.n_head = reader.integer("n_head", 12, 65536);
  gpt.n_embd = reader.integer("n_embd", 768, 1 << 20);
  gpt.n_positions = reader.integer("n_positions", 1024, 1 << 24);
  gpt.vocab_size = reader.integer("vocab_size", 50257, 1 << 24);
  gpt.n_inner = reader.integer("n_inner", 0, 1 << 24);
  if (gpt.n_inner == 4 * gpt.n_embd) gpt.n_inner = 0;
  if (gpt.n_embd % gpt.n_head != 0) {
    reader.fail("n_head", std::to_string(gpt.n_head) + " does not divide n_embd " + std::to_string(gpt.n_embd));
  }
  gpt.activation_function = our_activation(reader);
  gpt.bias = true;
  gpt.tie_word_embeddings = reader.boolean("tie_word_embeddings", true);
  constexpr double below_one = 0.999999;
  gpt.embd_pdrop = reader.number("embd_pdrop", 0.1, 0.0, below_one);
  gpt.resid_pdrop = reader.number("resid_pdrop", 0.1, 0.0, below_one);
  gpt.attn_pdrop = reader.number("attn_pdrop", 0.1, 0.0, below_one);
  gpt.layer_norm_epsilon = reader.number("layer_norm_epsilon", 1e-5, 1e-30, 1.0);
  gpt.initializer_range = reader.number("initializer_range", 0.02, 1e-30, 1e6);
  return model;
}

nlohmann::ordered_json huggingface_config(const ModelSettings& model, DType dtype,
                                          std::optional<std::int64_t> end_of_text) {
  if (model.type != "gpt") {
    throw UserError("a model of type \"" + model.type + "\" has no counterpart in the transformers library; a gpt has");
  }
  const GptSettings& gpt = model.gpt;
  if (!gpt.bias) {
    throw UserError(
        "model.bias false: GPT-2 in the transformers library always has biases, and adding zeros would be another "
        "model to train on; train with \"bias\": true to export to it");
  }
  const nlohmann::ordered_json token = end_of_text ? nlohmann::ordered_json(*end_of_text) : nlohmann::ordered_json();
  nlohmann::ordered_json config;
  config["architectures"] = {"GPT2LMHeadModel"};
  config["model_type"] = "gpt2";
  config["vocab_size"] = gpt.vocab_size;
  config["n_positions"] = gpt.n_positions;
  config["n_embd"] = gpt.n_embd;
  config["n_layer"] = gpt.n_layer;
  config["n_head"] = gpt.n_head;
  config["n_inner"] = gpt.n_inner > 0 ? nlohmann::ordered_json(gpt.n_inner) : nlohmann::ordered_json();
  config["activation_function"] = gpt.activation_function;
  config["resid_pdrop"] = gpt.resid_pdrop;
  config["embd_pdrop"] = gpt.embd_pdrop;
  config["attn_pdrop"] = gpt.attn_pdrop;
  config["layer_norm_epsilon"] = gpt.layer_norm_epsilon;
  config["initializer_range"] = gpt.initializer_range;
  config["tie_word_embeddings"] = gpt.tie_word_embeddings;
  config["scale_attn_weights"] = true;
  config["scale_attn_by_inverse_layer_idx"] = false;
  config["use_cache"] = true;
  config["torch_dtype"] = dtype == DType::f32 ? "float32" : dtype == DType::bf16 ? "bfloat16" : "float16";
  config["bos_token_id"] = token;
  config["eos_token_id"] = token;
  return config;
}

}  // namespace zt
