// The settings of a run as plain structs: what the JSON of INTERFACE (docs/config.md) says, resolved: no "auto",
// defaults filled in, batch sizes consistent. config/ makes them; everybody may read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace zt {

struct GptSettings {
  std::int64_t n_layer = 6, n_head = 6, n_embd = 384, n_positions = 256;
  std::int64_t vocab_size = 0;  // 0: "auto", from the data's tokenizer
  std::int64_t n_inner = 0;     // 0: 4 * n_embd
  std::string activation_function = "gelu_new";
  bool bias = true;
  bool tie_word_embeddings = true;
  double embd_pdrop = 0.0, resid_pdrop = 0.0, attn_pdrop = 0.0;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
};

struct MlpSettings {
  std::vector<std::int64_t> layers;  // inputs, hidden ..., outputs
  std::string activation = "identity";
  bool bias = true;
  std::string loss = "mse";  // or cross_entropy
};

struct ModelSettings {
  std::string type;  // gpt, mlp
  GptSettings gpt;
  MlpSettings mlp;
};

struct ColumnName {
  std::string name{};       // as in the header
  std::int64_t number = 0;  // from 1; 0: by name
};

struct DataSettings {
  std::string type;              // text, idx, csv, synthetic
  std::string path;              // text, csv: absolute
  std::string format = "plain";  // text: or prompt_completion
  std::string tokenizer = "bytes";
  double validation_fraction = 0.1;
  std::uint64_t split_seed = 0;  // which rows, or lines of prompt and completion, are for validation
  std::string images, labels;    // idx: absolute
  std::string validation_images, validation_labels;  // idx: absolute; both or neither
  std::vector<ColumnName> target;                    // csv
  bool header = true;
  bool normalize = true;
  std::string delimiter = ",";
  std::string task = "regression";  // synthetic: or tokens
  std::int64_t samples = 4096;
};

struct BatchSettings {  // train = micro * accumulation * world size
  std::int64_t train = 0, micro = 0, accumulation = 0;
};

struct OptimizerSettings {
  std::string type = "AdamW";  // Adam, AdamW, SGD
  double learning_rate = 3e-4;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0.0;
  bool decoupled_decay = true;  // Adam's adam_w_mode; AdamW
  double momentum = 0.0, dampening = 0.0;
  bool nesterov = false;
};

struct SchedulerSettings {
  std::string type;  // empty: constant; WarmupLR, WarmupDecayLR, WarmupCosineLR
  double warmup_min_lr = 0.0, warmup_max_lr = 0.001;
  std::int64_t warmup_num_steps = 1000, total_num_steps = 0;
  std::string warmup_type = "log";  // or linear
  double warmup_min_ratio = 0.0, cos_min_ratio = 1e-4;
};

struct LossScaleSettings {  // fp16
  double loss_scale = 0.0;  // 0: dynamic
  std::int64_t initial_scale_power = 32;
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_loss_scale = 1.0;
};

struct ZeroSettings {
  int stage = 0;
  std::int64_t max_live_parameters = 0;          // elements; 0: not set
  std::int64_t prefetch_bucket_size = 0;         // elements; 0: not set
  std::int64_t param_persistence_threshold = 0;  // elements, per segment
};

struct TrainingSettings {
  std::int64_t max_steps = 100;
  std::int64_t max_epochs = 0;  // 0: no limit
  std::uint64_t seed = 1234;
  std::int64_t eval_interval = 0, eval_steps = 10;
  std::int64_t checkpoint_interval = 0, checkpoints_to_keep = 2;
  std::string output_dir;           // absolute
  std::string sample_prompt;        // gpt: empty: no sample at the end
  bool local_accumulation = false;  // gradient_accumulation_order "local"
};

struct DeviceSettings {
  std::string type = "cpu";
  int threads = 0;                    // per rank; 0: not resolved yet ("auto"): the rank's share of the cores
  std::string communicator = "auto";  // shared, mpi
  int ranks_per_node = 0;             // 0: as they are
  std::string instruction_set = "auto";
};

struct Settings {
  ModelSettings model;
  DataSettings data;
  BatchSettings batch;
  OptimizerSettings optimizer;
  SchedulerSettings scheduler;
  DType dtype = DType::f32;
  LossScaleSettings loss_scale;
  std::string grad_accum_dtype;  // fp32, bf16, fp16; empty: unset
  double gradient_clipping = 0.0;
  std::int64_t steps_per_print = 10;
  bool wall_clock_breakdown = false;
  ZeroSettings zero;
  TrainingSettings training;
  std::int64_t checkpoint_every = 0;  // activation_checkpointing.every: recompute every k-th block
  DeviceSettings device;
};

}  // namespace zt
