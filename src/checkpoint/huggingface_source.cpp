// Reading.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "checkpoint/huggingface.h"
#include "checkpoint/huggingface_config.h"
#include "checkpoint/json_file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/transposed.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/shape_text.h"
#include "data/message_text.h"
#include "model/gpt_units.h"

namespace zt {
namespace {

namespace fs = std::filesystem;

constexpr const char* one_file = "model.safetensors";
constexpr const char* index_file = "model.safetensors.index.json";
constexpr std::int64_t largest_config = 16 << 20, largest_index = 64 << 20;  // bytes

// Buffers with the causal mask, which older versions of the library stored.
bool is_mask(const std::string& name) { return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"); }

class HuggingfaceSource final : public WeightSource {
 public:
  HuggingfaceSource(const fs::path& directory, const fs::path& entry) : directory_(directory) {
    const std::string config_path = (directory / "config.json").string();
    const nlohmann::json config = read_json_object(config_path, largest_config);
    model_ = model_of_huggingface_config(config, config_path);
    const auto end = config.find("eos_token_id");
    if (end != config.end() && end->is_number_unsigned() &&
        end->get<std::uint64_t>() < static_cast<std::uint64_t>(model_.gpt.vocab_size)) {
      end_of_text_ = end->get<std::int64_t>();
    }
    try {
      open_files(entry);
      check_layers(config_path);
      tensors_ = tensors_of(gpt_units(model_.gpt).units);
      find_tensors();
      check_the_rest();
    } catch (const RunError& error) {
      throw UserError(error.what());  // nothing has begun yet
    }
  }

  const std::vector<Tensor>& tensors() const override { return tensors_; }
  const ModelSettings& model() const override { return model_; }
  std::string description() const override { return "the Hugging Face GPT-2 in " + shown_path(directory_.string()); }
  std::optional<StoredTokenizer> tokenizer() const override {
    StoredTokenizer found;
    found.end_of_text = end_of_text_;
    for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt", "tokenizer_config.json",
                             "special_tokens_map.json", "added_tokens.json"}) {
      std::error_code ignored;
      if (fs::is_regular_file(directory_ / name, ignored)) found.files.push_back((directory_ / name).string());
    }
    if (found.files.empty()) return std::nullopt;
    return found;
  }

  void read(std::size_t tensor, std::int64_t first, std::int64_t count, float* out) const override {
    const Place& place = places_.at(tensor);
    const SafetensorsFile& file = *files_[place.file];
    if (!place.transposed) return file.read_floats(*place.stored, first, count, out);
    const std::vector<std::int64_t>& shape = tensors_[tensor].shape;
    read_transposed([&](std::int64_t from, std::int64_t n, float* to) { file.read_floats(*place.stored, from, n, to); },
                    shape[0], shape[1], first, count, out);
  }

 private:
  struct Place {
    std::size_t file = 0;
    const StoredTensor* stored = nullptr;
    bool transposed = false;
  };

  void open_files(const fs::path& entry) {
    if (entry.filename() != index_file) {
      files_.push_back(std::make_unique<SafetensorsFile>(entry.string()));
      return;
    }
    const std::string path = entry.string();
    const nlohmann::json index = read_json_object(path, largest_index);
    const auto map = index.find("weight_map");
    if (map == index.end() || !map->is_object() || map->empty()) {
      throw UserError(shown_path(path) + " has no weight_map that says which tensor is in which file");
    }
    std::set<std::string> names;
    for (const auto& [tensor, file] : map->items()) {
      if (!file.is_string())
        throw UserError(shown_path(path) + ": weight_map: \"" + shown(tensor, 120) + "\" names no file");
      names.insert(file.get<std::string>());
    }
    for (const std::string& name : names) {
      // A file of this directory and nothing else: the index may come from a stranger.
      if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos ||
          !name.ends_with(".safetensors")) {
        throw UserError(shown_path(path) + ": weight_map names \"" + shown(name, 120) +
                        "\"; it must be a safetensors file beside it");
      }
      files_.push_back(std::make_unique<SafetensorsFile>((directory_ / name).string()));
    }
    const std::vector<std::string> sorted(names.begin(), names.end());
    for (const auto& [tensor, file] : map->items()) {
      const auto place = std::ranges::lower_bound(sorted, file.get_ref<const std::string&>()) - sorted.begin();
      if (files_[static_cast<std::size_t>(place)]->find(tensor) == nullptr) {
        throw UserError(shown_path(files_[static_cast<std::size_t>(place)]->path()) + ": tensor \"" +
                        shown(tensor, 120) + "\" is missing, and the index says that it is there");
      }
    }
  }

  // Before a list is made of the tensors that a config announces.
  void check_layers(const std::string& config_path) const {
    std::size_t stored = 0;
    for (const auto& file : files_) stored += file->tensors().size();
    if (static_cast<std::uint64_t>(model_.gpt.n_layer) <= stored) return;
    throw UserError(shown_path(config_path) + ": n_layer is " + std::to_string(model_.gpt.n_layer) +
                    ", and the files beside it hold " + counted(static_cast<std::int64_t>(stored), "tensor") +
                    " in all: they belong to another config.json");
  }

  Place find(const std::string& name) const {
    Place place;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const StoredTensor* stored = files_[i]->find(name);
      if (stored == nullptr) continue;
      if (place.stored != nullptr) {
        throw UserError("tensor \"" + shown(name, 120) + "\" is in " + shown_path(files_[place.file]->path()) +
                        " and in " + shown_path(files_[i]->path()) + ": remove one of them");
      }
      place.file = i;
      place.stored = stored;
    }
    return place;
  }

  void find_tensors() {
    for (const Tensor& tensor : tensors_) {
      const HuggingfaceName theirs = huggingface_name(tensor.name);
      Place place;
      if (theirs.has_prefix) place = find("transformer." + theirs.name);
      if (place.stored == nullptr) place = find(theirs.name);
      if (place.stored == nullptr) {
        throw UserError(description() + " has no tensor " + (theirs.has_prefix ? "transformer." : "") + theirs.name +
                        ", which a model of its config.json has" +
                        (tensor.name == "lm_head.weight" ? " (tie_word_embeddings is false there)" : ""));
      }
      std::vector<std::int64_t> shape = tensor.shape;
      if (theirs.transposed) std::swap(shape.at(0), shape.at(1));
      const std::string where = shown_path(files_[place.file]->path()) + ": tensor \"" + place.stored->name + "\"";
      if (place.stored->shape != shape) {
        throw UserError(where + " has the shape " + shape_as_list(place.stored->shape) + "; after config.json it is " +
                        shape_as_list(shape));
      }
      if (!becomes_float(place.stored->type)) {
        throw UserError(where + " is stored as " + std::string(name_of(place.stored->type)) +
                        "; weights are F32, F16, BF16 or F64");
      }
      place.transposed = theirs.transposed;
      places_.push_back(place);
      used_.insert(place.stored);
    }
  }

  // Tensors that no tensor of ours is read from: masks, and the head's where it is tied.
  void check_the_rest() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      for (const StoredTensor& stored : files_[i]->tensors()) {
        if (used_.contains(&stored) || is_mask(stored.name)) continue;
        const std::string where = shown_path(files_[i]->path()) + ": tensor \"" + shown(stored.name, 120) + "\"";
        if (stored.name != "lm_head.weight") throw UserError(where + " is none of a GPT-2 of its config.json");
        check_tied_head(i, stored, where);
      }
    }
  }

  void check_tied_head(std::size_t file, const StoredTensor& head, const std::string& where) const {
    const Place& table = places_.front();
    bool is_same = head.shape == table.stored->shape && becomes_float(head.type);
    constexpr std::int64_t piece = 1 << 16;
    std::vector<float> ours(static_cast<std::size_t>(piece)), theirs(static_cast<std::size_t>(piece));
    for (std::int64_t first = 0; is_same && first < head.elements; first += piece) {
      const std::int64_t count = std::min(piece, head.elements - first);
      files_[file]->read_floats(head, first, count, theirs.data());
      files_[table.file]->read_floats(*table.stored, first, count, ours.data());
      is_same = std::equal(ours.begin(), ours.begin() + count, theirs.begin());
    }
    if (is_same) return;
    throw UserError(where +
                    " differs from the token embedding, but config.json says that they are tied: set "
                    "tie_word_embeddings to false there if the head is its own");
  }

  fs::path directory_;
  ModelSettings model_;
  std::optional<std::int64_t> end_of_text_;
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<Place> places_;  // by tensor
  std::set<const StoredTensor*> used_;
};

}  // namespace

HuggingfaceName huggingface_name(const std::string& ours) {
  HuggingfaceName theirs;
  theirs.name = ours;
  theirs.has_prefix = ours != "lm_head.weight";
  for (const char* linear : {".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"}) {
    theirs.transposed = theirs.transposed || ours.ends_with(linear);
  }
  return theirs;
}

std::string how_to_convert(const std::string& directory) {
  return "python -c \"from transformers import GPT2LMHeadModel as M; M.from_pretrained('" +
         shown_path(directory.empty() ? "." : directory) +
         "').save_pretrained('NEW')\" writes model.safetensors to NEW";
}

std::unique_ptr<WeightSource> open_huggingface(const std::string& path) {
  std::error_code ignored;
  const fs::path given(path);
  const bool is_directory = fs::is_directory(given, ignored);
  fs::path directory = is_directory ? given : given.parent_path();
  if (directory.empty()) directory = ".";
  fs::path entry = given;
  const auto has = [&](const char* name) { return fs::is_regular_file(directory / name, ignored); };
  if (is_directory) {
    entry = directory / (has(one_file) ? one_file : index_file);
    if (!has(one_file) && !has(index_file)) {
      const bool is_old = has("pytorch_model.bin") || has("pytorch_model.bin.index.json");
      throw UserError(shown_path(path) + (is_old
                                              ? " holds its weights as pytorch_model.bin, which runs code when it is "
                                                "opened and is not read here; convert it: " +
                                                    how_to_convert(path)
                                              : " holds no " + std::string(one_file) + " and no " + index_file));
    }
  }
  if (!has("config.json")) {
    throw UserError(shown_path(directory.string()) + " has no config.json, which says what model " +
                    shown(entry.filename().string(), 120) + " belongs to: put it there");
  }
  return std::make_unique<HuggingfaceSource>(directory, entry);
}

}  // namespace zt
