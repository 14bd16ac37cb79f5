#include "config/model_section.h"

#include "core/errors.h"

namespace zt {
namespace {

class SectionReader {
 public:
  explicit SectionReader(const Json& section) : section_(section) {}

  [[noreturn]] static void fail(const std::string& key) {
    throw UserError("its section \"model\" has no " + key + " that a model can have");
  }
  const Json& value(const std::string& key) const {
    if (!section_.is_object() || !section_.contains(key)) fail(key);
    return section_.at(key);
  }
  std::int64_t integer(const std::string& key, std::int64_t most) const { return integer_of(value(key), key, most); }
  static std::int64_t integer_of(const Json& found, const std::string& key, std::int64_t most) {
    if (!found.is_number_integer() || found < 1 || found > most) fail(key);
    return found.get<std::int64_t>();
  }
  double number(const std::string& key) const {
    if (!value(key).is_number()) fail(key);
    return value(key).get<double>();
  }
  bool boolean(const std::string& key) const {
    if (!value(key).is_boolean()) fail(key);
    return value(key).get<bool>();
  }
  std::string text(const std::string& key) const {
    if (!value(key).is_string()) fail(key);
    return value(key).get<std::string>();
  }

 private:
  const Json& section_;
};

GptSettings gpt_of(const SectionReader& reader) {
  constexpr std::int64_t widest = 1 << 24;
  GptSettings gpt;
  gpt.n_layer = reader.integer("n_layer", 10000);
  gpt.n_head = reader.integer("n_head", 65536);
  gpt.n_embd = reader.integer("n_embd", 1 << 20);
  gpt.n_positions = reader.integer("n_positions", widest);
  gpt.vocab_size = reader.integer("vocab_size", widest);
  gpt.n_inner = reader.integer("n_inner", widest);
  if (gpt.n_inner == 4 * gpt.n_embd) gpt.n_inner = 0;
  gpt.activation_function = reader.text("activation_function");
  gpt.bias = reader.boolean("bias");
  gpt.tie_word_embeddings = reader.boolean("tie_word_embeddings");
  gpt.embd_pdrop = reader.number("embd_pdrop");
  gpt.resid_pdrop = reader.number("resid_pdrop");
  gpt.attn_pdrop = reader.number("attn_pdrop");
  gpt.layer_norm_epsilon = reader.number("layer_norm_epsilon");
  gpt.initializer_range = reader.number("initializer_range");
  return gpt;
}

MlpSettings mlp_of(const SectionReader& reader) {
  MlpSettings mlp;
  const Json& layers = reader.value("layers");
  if (!layers.is_array() || layers.size() < 2) SectionReader::fail("layers");
  for (const Json& width : layers) mlp.layers.push_back(SectionReader::integer_of(width, "layers", 1 << 24));
  mlp.activation = reader.text("activation");
  mlp.bias = reader.boolean("bias");
  mlp.loss = reader.text("loss");
  return mlp;
}

}  // namespace

Json model_section(const ModelSettings& model) {
  Json section;
  section["type"] = model.type;
  if (model.type == "gpt") {
    const GptSettings& gpt = model.gpt;
    section["n_layer"] = gpt.n_layer;
    section["n_head"] = gpt.n_head;
    section["n_embd"] = gpt.n_embd;
    section["n_positions"] = gpt.n_positions;
    section["vocab_size"] = gpt.vocab_size;
    section["n_inner"] = gpt.n_inner > 0 ? gpt.n_inner : 4 * gpt.n_embd;
    section["activation_function"] = gpt.activation_function;
    section["bias"] = gpt.bias;
    section["tie_word_embeddings"] = gpt.tie_word_embeddings;
    section["embd_pdrop"] = gpt.embd_pdrop;
    section["resid_pdrop"] = gpt.resid_pdrop;
    section["attn_pdrop"] = gpt.attn_pdrop;
    section["layer_norm_epsilon"] = gpt.layer_norm_epsilon;
    section["initializer_range"] = gpt.initializer_range;
  } else {
    section["layers"] = model.mlp.layers;
    section["activation"] = model.mlp.activation;
    section["bias"] = model.mlp.bias;
    section["loss"] = model.mlp.loss;
  }
  return section;
}

ModelSettings model_of_section(const Json& section) {
  const SectionReader reader(section);
  ModelSettings model;
  model.type = reader.text("type");
  if (model.type == "gpt") {
    model.gpt = gpt_of(reader);
  } else if (model.type == "mlp") {
    model.mlp = mlp_of(reader);
  } else {
    SectionReader::fail("type");
  }
  return model;
}

}  // namespace zt
