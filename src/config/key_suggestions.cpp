// The nearest known name for a misspelt one.
#include <algorithm>
#include <array>

#include "config/keys.h"

namespace zt {
namespace {

// Names that other programs use for what a key here says.
constexpr std::array synonyms = {
    std::pair{"learning_rate", "optimizer.params.lr"},
    std::pair{"batch_size", "train_batch_size"},
    std::pair{"micro_batch_size", "train_micro_batch_size_per_gpu"},
    std::pair{"per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
    std::pair{"grad_clip", "gradient_clipping"},
    std::pair{"max_grad_norm", "gradient_clipping"},
    std::pair{"warmup_steps", "scheduler.params.warmup_num_steps"},
    std::pair{"lr_scheduler", "scheduler"},
    std::pair{"epochs", "training.max_epochs"},
    std::pair{"num_train_epochs", "training.max_epochs"},
    std::pair{"steps", "training.max_steps"},
    std::pair{"num_steps", "training.max_steps"},
    std::pair{"train_iters", "training.max_steps"},
    std::pair{"max_iters", "training.max_steps"},
    std::pair{"hidden_size", "model.n_embd"},
    std::pair{"num_layers", "model.n_layer"},
    std::pair{"num_hidden_layers", "model.n_layer"},
    std::pair{"num_attention_heads", "model.n_head"},
    std::pair{"block_size", "model.n_positions"},
    std::pair{"n_ctx", "model.n_positions"},
    std::pair{"seq_length", "model.n_positions"},
    std::pair{"seq_len", "model.n_positions"},
    std::pair{"max_position_embeddings", "model.n_positions"},
    std::pair{"dropout", "model.resid_pdrop"},
    std::pair{"num_threads", "device.threads"},
    std::pair{"zero_stage", "zero_optimization.stage"},
    std::pair{"gradient_checkpointing", "activation_checkpointing.every"},
};

std::string parent_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string leaf_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

bool applies(const Key& key, const std::map<std::string, std::string>& selected) {
  if (key.kind == KeyKind::refused || key.kind == KeyKind::alias) return false;
  const auto type = selected.find(selector_of(key.path));
  return key.types.empty() || type == selected.end() ||
         std::find(key.types.begin(), key.types.end(), type->second) != key.types.end();
}

}  // namespace

// Damerau-Levenshtein, adjacent transpositions counted once.
std::string suggest_key(const std::string& section, const std::string& key,
                        const std::map<std::string, std::string>& selected) {
  std::vector<std::string> here;
  std::vector<std::string> elsewhere;
  for (const Key& row : key_table()) {
    if (!applies(row, selected)) continue;
    (parent_of(row.path) == section ? here : elsewhere).push_back(row.path);
  }
  // A name that is right but stands in another section says more than one that merely looks alike.
  std::vector<std::string> same;
  for (const std::string& path : elsewhere) {
    if (leaf_of(path) == key) same.push_back(path);
  }
  const auto names = [](const std::vector<std::string>& paths) {
    std::vector<std::string> leaves;
    for (const std::string& path : paths) leaves.push_back(leaf_of(path));
    return leaves;
  };
  for (const auto& [other, path] : synonyms) {
    if (key == other) return std::string("did you mean ") + path + "?";
  }
  const std::string near = nearest_word(key, names(here));
  if (same.size() == 1 && (near.empty() || edit_distance(key, near) > 1)) return "it belongs to " + same.front();
  if (!near.empty()) return "did you mean " + join_path(section, near) + "?";
  if (!same.empty() && same.size() <= 4) {
    std::string text = "keys of that name: ";
    for (std::size_t i = 0; i < same.size(); ++i) text += (i > 0 ? ", " : "") + same[i];
    return text;
  }
  const std::string far = nearest_word(key, names(elsewhere));
  if (!far.empty()) {
    for (const std::string& path : elsewhere) {
      if (leaf_of(path) == far) return "did you mean " + path + "?";
    }
  }
  // Nothing is near: what acts in this section, if that is a short list.
  std::string text;
  std::size_t count = 0;
  for (const Key& row : key_table()) {
    if (row.kind != KeyKind::used || !applies(row, selected) || parent_of(row.path) != section) continue;
    text += (count++ == 0 ? "known here: " : ", ") + leaf_of(row.path);
  }
  if (count > 12) return "";
  return text;
}

}  // namespace zt
