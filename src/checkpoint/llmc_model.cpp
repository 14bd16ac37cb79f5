#include "checkpoint/llmc_model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "checkpoint/file_access.h"
#include "checkpoint/new_directory.h"
#include "checkpoint/stored_type.h"
#include "core/errors.h"
#include "data/message_text.h"
#include "model/gpt_units.h"

namespace zt {
namespace {

constexpr std::int64_t header_integers = 256, header_bytes = header_integers * 4;
constexpr std::int64_t vocabulary_multiple = 128;  // rows that llm.c pads the vocabulary to
constexpr std::int32_t version_of_fp32 = 3, version_of_bf16 = 5;

// In the file's order; of every layer but for the first two and the last two.
constexpr std::array<const char*, 16> order = {
    "wte.weight",         "wpe.weight",       "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
    "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",    "mlp.c_fc.bias",
    "mlp.c_proj.weight",  "mlp.c_proj.bias",  "ln_f.weight", "ln_f.bias"};

bool is_of_layers(std::size_t kind) { return kind >= 2 && kind < 14; }

// Calls visit(name, padding) for every tensor in the file's order; padding: elements behind it that belong to none.
template <typename Visit>
void for_each_stored(const GptSettings& gpt, std::int64_t padded_vocabulary, Visit&& visit) {
  for (std::size_t kind = 0; kind < order.size(); ++kind) {
    for (std::int64_t layer = 0; layer < (is_of_layers(kind) ? gpt.n_layer : 1); ++layer) {
      const std::string name =
          is_of_layers(kind) ? "h." + std::to_string(layer) + "." + order[kind] : std::string(order[kind]);
      visit(name, kind == 0 ? (padded_vocabulary - gpt.vocab_size) * gpt.n_embd : 0);
    }
  }
}

ModelSettings settings_of(const std::array<std::int32_t, header_integers>& header, const std::string& path) {
  const auto number = [&](std::size_t index, const char* what, std::int64_t most) {
    const std::int64_t value = header[index];
    if (value < 1 || value > most) {
      throw UserError(shown_path(path) + ": integer " + std::to_string(index) + " of its header, " + what + ", is " +
                      std::to_string(value) + "; it must be from 1 to " + std::to_string(most));
    }
    return value;
  };
  ModelSettings model;
  model.type = "gpt";
  model.gpt.n_positions = number(2, "the longest sequence", 1 << 24);
  model.gpt.vocab_size = number(3, "the size of the vocabulary", 1 << 24);
  model.gpt.n_layer = number(4, "the number of layers", 10000);
  model.gpt.n_head = number(5, "the number of heads", 65536);
  model.gpt.n_embd = number(6, "the width", 1 << 20);
  if (number(7, "the padded size of the vocabulary", 1 << 25) < model.gpt.vocab_size) {
    throw UserError(shown_path(path) + ": its padded vocabulary is smaller than its vocabulary");
  }
  if (model.gpt.n_embd % model.gpt.n_head != 0) {
    throw UserError(shown_path(path) + ": its width " + std::to_string(model.gpt.n_embd) + " is not divided by its " +
                    std::to_string(model.gpt.n_head) + " heads");
  }
  return model;
}

class LlmcModel final : public WeightSource {
 public:
  explicit LlmcModel(const std::string& path) : file_(path) {
    const auto fail = [&](const std::string& reason) { throw UserError(shown_path(path) + " " + reason); };
    std::array<std::int32_t, header_integers> header{};
    if (file_.bytes() < header_bytes) fail("is no whole model file of llm.c: it is shorter than the header");
    file_.read(0, header_bytes, header.data());
    if (header[0] != llmc_model_magic) fail("is no model file of llm.c: it does not begin with 20240326");
    if (header[1] != version_of_fp32 && header[1] != version_of_bf16) {
      fail("is a model file of llm.c of version " + std::to_string(header[1]) +
           "; versions 3 (fp32) and 5 (bf16) are read");
    }
    type_ = header[1] == version_of_fp32 ? DType::f32 : DType::bf16;
    model_ = settings_of(header, path);
    check_size(header[7]);
    tensors_ = tensors_of(gpt_units(model_.gpt).units);
    find_tensors(header[7]);
  }

  const std::vector<Tensor>& tensors() const override { return tensors_; }
  const ModelSettings& model() const override { return model_; }
  std::string description() const override { return "the model of llm.c in " + shown_path(file_.path()); }
  void read(std::size_t tensor, std::int64_t first, std::int64_t count, float* out) const override {
    const auto size = static_cast<std::int64_t>(size_of(type_));
    char* raw = reinterpret_cast<char*>(out) + count * (static_cast<std::int64_t>(sizeof(float)) - size);
    file_.read(offsets_.at(tensor) + first * size, count * size, raw);
    to_floats(stored_type(type_), raw, count, out);
  }

 private:
  // Before a list is made of the tensors that a header announces. No product here comes near 2^63: layers are the most,
  // 10^4 * 12 * 2^40 elements.
  void check_size(std::int64_t padded_vocabulary) const {
    const GptSettings& gpt = model_.gpt;
    const std::int64_t C = gpt.n_embd;
    const std::int64_t elements =
        (padded_vocabulary + gpt.n_positions) * C + gpt.n_layer * (12 * C * C + 13 * C) + 2 * C;
    const std::int64_t bytes = header_bytes + elements * static_cast<std::int64_t>(size_of(type_));
    if (bytes == file_.bytes()) return;
    throw UserError(shown_path(file_.path()) + " is no whole model file of llm.c: after its header it has " +
                    std::to_string(bytes) + " bytes, and there are " + std::to_string(file_.bytes()));
  }

  void find_tensors(std::int64_t padded_vocabulary) {
    const auto size = static_cast<std::int64_t>(size_of(type_));
    offsets_.resize(tensors_.size());
    std::unordered_map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < tensors_.size(); ++i) index.emplace(tensors_[i].name, i);
    std::int64_t offset = header_bytes;
    for_each_stored(model_.gpt, padded_vocabulary, [&](const std::string& name, std::int64_t padding) {
      const std::size_t place = index.at(name);
      offsets_[place] = offset;
      offset += (tensors_[place].count() + padding) * size;
    });
  }

  InputDescriptor file_;
  DType type_ = DType::f32;
  ModelSettings model_;
  std::vector<Tensor> tensors_;
  std::vector<std::int64_t> offsets_;  // by tensor, in bytes
};

void refuse_other_models(const ModelSettings& model) {
  const auto fail = [](const std::string& what) {
    throw UserError("llm.c's GPT-2 cannot express this model: " + what);
  };
  const GptSettings& gpt = model.gpt;
  if (model.type != "gpt") fail("it is of type \"" + model.type + "\"");
  if (!gpt.bias) fail("model.bias is false, and it always has biases");
  if (!gpt.tie_word_embeddings) fail("its head is not tied to the token embedding (model.tie_word_embeddings)");
  if (gpt.activation_function != "gelu_new")
    fail("model.activation_function is \"" + gpt.activation_function + "\", not \"gelu_new\"");
  if (gpt.n_inner != 0 && gpt.n_inner != 4 * gpt.n_embd) fail("model.n_inner is not 4 x n_embd");
  if (gpt.layer_norm_epsilon != 1e-5)
    fail("model.layer_norm_epsilon is " + shown(gpt.layer_norm_epsilon) + ", not 1e-5");
}

}  // namespace

std::unique_ptr<WeightSource> open_llmc_model(const std::string& path) {
  try {
    return std::make_unique<LlmcModel>(path);
  } catch (const RunError& error) {
    throw UserError(error.what());  // nothing has begun yet
  }
}

std::string export_llmc_model(const WeightSource& source, const ModelSettings& model, const std::string& directory,
                              DType dtype) {
  refuse_other_models(model);
  if (dtype == DType::f16) throw UserError("llm.c's model files are fp32 or bf16, not fp16");
  const GptSettings& gpt = model.gpt;
  const std::vector<WeightSource::Tensor> tensors = tensors_of(gpt_units(gpt).units);
  const std::vector<std::size_t> places = match_tensors(tensors, source);
  std::unordered_map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < tensors.size(); ++i) index.emplace(tensors[i].name, i);
  const std::int64_t padded = (gpt.vocab_size + vocabulary_multiple - 1) / vocabulary_multiple * vocabulary_multiple;

  NewDirectory folder(directory);
  const std::string name = "model.bin";
  OutputDescriptor file(folder.path(name));
  std::array<std::int32_t, header_integers> header{};
  const std::array<std::int64_t, 8> numbers = {
      llmc_model_magic, dtype == DType::f32 ? version_of_fp32 : version_of_bf16,
      gpt.n_positions,  gpt.vocab_size,
      gpt.n_layer,      gpt.n_head,
      gpt.n_embd,       padded};
  for (std::size_t i = 0; i < numbers.size(); ++i) header[i] = static_cast<std::int32_t>(numbers[i]);
  file.write(header.data(), header_bytes);

  constexpr std::int64_t piece = 1 << 20;  // elements
  std::vector<float> values(static_cast<std::size_t>(piece));
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  for_each_stored(gpt, padded, [&](const std::string& tensor, std::int64_t padding) {
    const std::size_t place = places[index.at(tensor)];
    const std::int64_t elements = tensors[index.at(tensor)].count();
    for (std::int64_t first = 0; first < elements; first += piece) {
      const std::int64_t count = std::min(piece, elements - first);
      source.read(place, first, count, values.data());
      refuse_not_finite(source, source.tensors()[place], first, values.data(), count);
      from_floats(values.data(), count, dtype, values.data());
      file.write(values.data(), count * size);
    }
    if (padding == 0) return;
    std::fill(values.begin(), values.end(), 0.0F);
    for (std::int64_t first = 0; first < padding; first += piece) {
      file.write(values.data(), std::min(piece, padding - first) * size);
    }
  });
  file.close();
  folder.finish();
  return name;
}

}  // namespace zt
