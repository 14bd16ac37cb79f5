// From config files and --set to the settings of a run: read, merge, check, resolve "auto", apply the rules that
// concern several keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/json_reader.h"
#include "config/problems.h"
#include "config/settings.h"

namespace zt {

// Settings::zero.stage while it is left to the memory.
constexpr int stage_left_open = -1;

// What "auto" leaves to the memory that a rank finds: zero_optimization.stage, activation_checkpointing.every (also
// where the stage is "auto" and this key is not given), and with either of them the micro-batch, where nothing but
// train_batch_size is given. Until they are chosen (app/fit_memory.h) nothing can run.
struct LeftOpen {
  bool stage = false, recomputation = false, micro_batch = false;
  bool any() const { return stage || recomputation; }
};

struct ResolvedConfig {
  Settings settings;
  Json json;                         // what --print-config prints; read again, it gives the same settings
  std::vector<std::string> notices;  // one line each, for the user
  LeftOpen left_open;
  std::int64_t memory_limit = 0;  // device.memory_limit: bytes; 0: none
};

// The batch of a run that goes on: the micro-batches of a step stay the same ones, whatever the number of ranks.
struct ResumedBatch {
  // 0: not known yet, and the rules of the batch are left out: `micro` is then as the config says, for one rank.
  std::int64_t train = 0, micro = 0;
  std::string grad_accum_dtype;  // of the sums; empty: as the config says
};

// What weights in a file say of the model that they belong to.
struct PretrainedModel {
  Json section;             // as the config's section "model"
  std::string description;  // of where they lie
  // A checkpoint that the run goes on from: it fills in what the config leaves open; the rest is compared with it later
  // (train/resume.h).
  bool is_of_resumed_run = false;
};

struct ResolveOptions {
  // These decide precision where both sections say "auto":
  bool bf16_is_fast = false;              // on the CPU
  bool expects_gpu = false;               // device.type "auto" will be a GPU, on which it is
  std::optional<std::string> output_dir;  // --output; replaces training.output_dir
  // Given: train_batch_size and train_micro_batch_size_per_gpu are these unless --set says otherwise, and ranks may be
  // left without a micro-batch in the last micro-step.
  std::optional<ResumedBatch> resumed;
  std::filesystem::path current_directory = std::filesystem::current_path();
  // Looks into the weights that model.pretrained names. UserError where they cannot be used; not given: nobody looks.
  std::function<PretrainedModel(const std::string& path)> pretrained_model;
  std::optional<Json> base;  // sections that lie below those of the files: the config of a checkpoint
};

// Throws ConfigError, whose text lists every mistake.
ResolvedConfig resolve_config(const std::vector<std::string>& files, const std::vector<std::string>& sets,
                              int world_size, const ResolveOptions& options = {});

// What "auto" means for keys that depend on the data and the machine: settings and json are changed alike. Until
// they are given, these keys are 0 or "auto" in settings and "auto" in json.
struct LateValues {
  std::optional<std::int64_t> vocab_size = std::nullopt;
  std::optional<std::string> device_type = std::nullopt;
  std::optional<int> threads = std::nullopt;
  std::optional<std::string> communicator = std::nullopt;
  std::optional<int> ranks_per_node = std::nullopt;
  std::optional<std::string> instruction_set = std::nullopt;
};
void settle(ResolvedConfig& config, const LateValues& values);

}  // namespace zt
