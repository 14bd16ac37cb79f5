// The nearest known name for a misspelt one.
#include <algorithm>
#include <array>

#include "config/key_values.h"
#include "config/keys.h"

namespace zt {
namespace {

// Names that other programs use for what a key here says.
constexpr std::array synonyms = {
    std::pair{"learning_rate", "optimizer.params.lr"},
    std::pair{"epsilon", "optimizer.params.eps"},
    std::pair{"epsilon", "model.layer_norm_epsilon"},
    std::pair{"batch_size", "train_batch_size"},
    std::pair{"micro_batch_size", "train_micro_batch_size_per_gpu"},
    std::pair{"train_micro_batch_size", "train_micro_batch_size_per_gpu"},
    std::pair{"per_device_train_batch_size", "train_micro_batch_size_per_gpu"},
    std::pair{"grad_clip", "gradient_clipping"},
    std::pair{"clip_grad_norm", "gradient_clipping"},
    std::pair{"max_grad_norm", "gradient_clipping"},
    std::pair{"warmup_steps", "scheduler.params.warmup_num_steps"},
    std::pair{"warmup_iters", "scheduler.params.warmup_num_steps"},
    std::pair{"lr_scheduler", "scheduler"},
    std::pair{"epochs", "training.max_epochs"},
    std::pair{"num_epochs", "training.max_epochs"},
    std::pair{"num_train_epochs", "training.max_epochs"},
    std::pair{"steps", "training.max_steps"},
    std::pair{"num_steps", "training.max_steps"},
    std::pair{"total_steps", "training.max_steps"},
    std::pair{"total_steps", "scheduler.params.total_num_steps"},
    std::pair{"train_iters", "training.max_steps"},
    std::pair{"max_iters", "training.max_steps"},
    std::pair{"log_interval", "steps_per_print"},
    std::pair{"log_every", "steps_per_print"},
    std::pair{"logging_steps", "steps_per_print"},
    std::pair{"eval_every", "training.eval_interval"},
    std::pair{"output", "training.output_dir"},
    std::pair{"out_dir", "training.output_dir"},
    std::pair{"save_dir", "training.output_dir"},
    std::pair{"random_seed", "training.seed"},
    std::pair{"d_model", "model.n_embd"},
    std::pair{"embed_dim", "model.n_embd"},
    std::pair{"hidden_size", "model.n_embd"},
    std::pair{"num_layers", "model.n_layer"},
    std::pair{"num_hidden_layers", "model.n_layer"},
    std::pair{"num_heads", "model.n_head"},
    std::pair{"num_attention_heads", "model.n_head"},
    std::pair{"hidden_act", "model.activation_function"},
    std::pair{"hidden_act", "model.activation"},
    std::pair{"intermediate_size", "model.n_inner"},
    std::pair{"block_size", "model.n_positions"},
    std::pair{"context_length", "model.n_positions"},
    std::pair{"n_ctx", "model.n_positions"},
    std::pair{"seq_length", "model.n_positions"},
    std::pair{"seq_len", "model.n_positions"},
    std::pair{"max_position_embeddings", "model.n_positions"},
    std::pair{"vocab", "model.vocab_size"},
    std::pair{"vocabulary_size", "model.vocab_size"},
    std::pair{"dropout", "model.resid_pdrop"},
    std::pair{"num_samples", "data.samples"},
    std::pair{"val_fraction", "data.validation_fraction"},
    std::pair{"num_threads", "device.threads"},
    std::pair{"zero", "zero_optimization"},
    std::pair{"zero_stage", "zero_optimization.stage"},
    std::pair{"zero_optimisation", "zero_optimization"},
    std::pair{"mixed_precision", "bf16"},
    std::pair{"float16", "fp16"},
    std::pair{"optimiser", "optimizer"},
    std::pair{"grad_accum", "gradient_accumulation_steps"},
    std::pair{"accumulation_steps", "gradient_accumulation_steps"},
    std::pair{"micro_batch_per_gpu", "train_micro_batch_size_per_gpu"},
    std::pair{"train_micro_batch_size_per_device", "train_micro_batch_size_per_gpu"},
    std::pair{"global_batch_size", "train_batch_size"},
    std::pair{"max_norm", "gradient_clipping"},
    std::pair{"activation_checkpoint", "activation_checkpointing"},
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
  if (key.kind != KeyKind::used && key.kind != KeyKind::notice) return false;
  const auto type = selected.find(selector_of(key.path));
  return key.types.empty() || type == selected.end() ||
         std::find(key.types.begin(), key.types.end(), type->second) != key.types.end();
}

// Words of choices that other programs write differently; the right one counts where it is a choice.
constexpr std::array words_elsewhere = {
    std::pair{"float16", "fp16"},
    std::pair{"half", "fp16"},
    std::pair{"torch.float16", "fp16"},
    std::pair{"bfloat16", "bf16"},
    std::pair{"torch.bfloat16", "bf16"},
    std::pair{"float32", "fp32"},
    std::pair{"float", "fp32"},
    std::pair{"torch.float32", "fp32"},
    std::pair{"fp16", "float16"},
    std::pair{"half", "float16"},
    std::pair{"bf16", "bfloat16"},
    std::pair{"swish", "silu"},
    std::pair{"jsonl", "prompt_completion"},
    std::pair{"json", "prompt_completion"},
    std::pair{"text", "plain"},
    std::pair{"txt", "plain"},
    std::pair{"char", "characters"},
    std::pair{"chars", "characters"},
    std::pair{"byte", "bytes"},
    std::pair{"tab", "\t"},
    std::pair{"none", "identity"},
    std::pair{"linear", "identity"},
};

bool is_used(const std::string& path, const std::map<std::string, std::string>& selected) {
  return std::any_of(key_table().begin(), key_table().end(), [&](const Key& row) {
    return row.path == path && row.kind == KeyKind::used && applies(row, selected);
  });
}

std::string synonym_of(const std::string& section, const std::string& key,
                       const std::map<std::string, std::string>& selected) {
  std::string found;
  for (const auto& [other, path] : synonyms) {
    if (key != other || !is_used(path, selected)) continue;
    if (found.empty() || parent_of(path) == section) found = path;
  }
  return found;
}

// "training/max_steps": empty where the key has no such signs.
std::string path_with_dots(const std::string& key, const std::map<std::string, std::string>& selected) {
  if (key.find_first_of("/:[") == std::string::npos) return "";
  if (key.find('[') != std::string::npos) return "a path is written with dots, and a list is given as a whole";
  std::string path = key;
  std::replace_if(
      path.begin(), path.end(), [](char c) { return c == '/' || c == ':'; }, '.');
  return "a path is written with dots" + (is_used(path, selected) ? ": " + path : std::string());
}

// What acts in this section, if that is a short list.
std::string known_here(const std::string& section, const std::map<std::string, std::string>& selected) {
  constexpr int longest = 12;
  std::string text;
  int count = 0;
  for (const Key& row : key_table()) {
    if (row.kind != KeyKind::used || !applies(row, selected) || parent_of(row.path) != section) continue;
    text += (count++ == 0 ? "known here: " : ", ") + leaf_of(row.path);
  }
  return count > longest ? "" : text;
}

}  // namespace

std::string choice_meant(const std::string& word, const std::vector<std::string>& choices) {
  for (const auto& [other, choice] : words_elsewhere) {
    if (in_lower_case(word) == other && std::find(choices.begin(), choices.end(), choice) != choices.end()) {
      return choice;
    }
  }
  return "";
}

std::string counterpart_of(const std::string& path) {
  if (path == "model.activation") return "model.activation_function";
  if (path == "model.activation_function") return "model.activation";
  return "";
}

std::string suggest_key(const std::string& section, const std::string& written,
                        const std::map<std::string, std::string>& selected) {
  // Options of command lines, "train-iters", become keys in many files.
  std::string key = written;
  std::replace(key.begin(), key.end(), '-', '_');
  if (std::string text = path_with_dots(key, selected); !text.empty()) return text;
  if (const std::string path = synonym_of(section, key, selected); !path.empty()) {
    return "did you mean " + path + "?";
  }
  std::vector<std::string> here;       // names
  std::vector<std::string> idle_here;  // of known keys without effect
  std::vector<std::string> elsewhere;  // paths
  std::vector<std::string> same;       // of the very name, in another section
  for (const Key& row : key_table()) {
    if (!applies(row, selected)) continue;
    const bool is_here = parent_of(row.path) == section;
    if (!is_here && leaf_of(row.path) == key && (same.empty() || same.back() != row.path)) same.push_back(row.path);
    if (row.kind == KeyKind::used) {
      is_here ? here.push_back(leaf_of(row.path)) : elsewhere.push_back(row.path);
    } else if (is_here && !section.empty()) {
      idle_here.push_back(leaf_of(row.path));
    }
  }
  // A name that is right but stands in another section says more than one that merely looks alike.
  std::vector<std::string> other_names;
  other_names.reserve(elsewhere.size());
  for (const std::string& path : elsewhere) other_names.push_back(leaf_of(path));
  const std::string near = nearest_word(key, here);
  if (same.size() == 1 && (near.empty() || edit_distance(key, near) > 1)) {
    return (parent_of(same.front()).empty() ? "it stands at the top level: " : "it belongs to ") + same.front();
  }
  if (!near.empty()) return "did you mean " + join_path(section, near) + "?";
  const std::string idle = nearest_word(key, idle_here);
  if (!idle.empty()) return "did you mean " + join_path(section, idle) + "?";
  const std::string list = section.empty() ? "" : known_here(section, selected);
  if (!list.empty()) return list;
  if (!same.empty()) {
    constexpr std::size_t most = 6;
    std::string text = "keys of that name: ";
    for (std::size_t i = 0; i < std::min(most, same.size()); ++i) text += (i > 0 ? ", " : "") + same[i];
    return text + (same.size() > most ? ", ..." : "");
  }
  const std::string far = nearest_word(key, other_names);
  for (const std::string& path : elsewhere) {
    if (!far.empty() && leaf_of(path) == far) return "did you mean " + path + "?";
  }
  return "";
}

}  // namespace zt
