// The settings of a run as plain structs: what the JSON of INTERFACE (docs/config.md) says, resolved: no "auto",
// defaults filled in, batch sizes consistent. config/ makes them; everybody may read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/precision.h"

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
  std::int64_t head_rows = 0;  // positions whose logits are made at once; 0: by their memory (not a key of the config)
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
  std::vector<std::string> freeze;  // name patterns of parameters that training leaves as they are
  std::string pretrained;           // weights to start from: absolute; empty: initial ones
};

struct ColumnName {
  std::string name{};       // as in the header
  std::int64_t number = 0;  // from 1; 0: by name
};

struct DataSettings {
  std::string type;                 // text, tokens, idx, csv, synthetic
  std::string path;                 // text, csv: absolute
  std::string format = "plain";     // text: or prompt_completion; tokens: llm.c, nanogpt, megatron, or empty
  std::string tokenizer = "bytes";  // characters, or a path: absolute; of tokens empty: none
  std::string train, validation;    // tokens: paths or patterns, absolute; no validation: empty
  bool documents_apart = false;     // tokens: a window ends with its document
  std::int64_t end_of_text = -1;    // tokens: the id at which documents start; -1: the tokenizer's, or GPT-2's
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

// In which order the gradients of a step are added up: over all micro-batches in turn, or each rank its own ones first.
enum class AccumulationOrder : std::uint8_t { global, local };
constexpr const char* name_of(AccumulationOrder order) {
  return order == AccumulationOrder::local ? "local" : "global";
}

// train = micro * J. The J micro-batches of a step are dealt out to N ranks in turn, in accumulation = ceil(J / N)
// micro-steps; J is a multiple of N unless a run goes on with another number of ranks than it began with.
struct BatchSettings {
  std::int64_t train = 0, micro = 0, accumulation = 0;
  std::int64_t micro_batches() const { return train / micro; }  // J
};

struct OptimizerSettings {
  std::string type = "AdamW";  // Adam, AdamW, SGD, Adagrad, Lion, Lamb, Muon
  double learning_rate = 3e-4;
  double weight_decay = 0.0;
  bool decay_biases = true, decay_norms = true;  // whether weight_decay applies to them
  double epsilon = 1e-8;                         // Adam, Adagrad, Lamb; Muon's Adam
  double beta1 = 0.9, beta2 = 0.999;             // Adam, Lion, Lamb; Muon's Adam
  bool bias_correction = true;                   // Adam, Lamb
  // Adam
  bool decoupled_decay = true;  // adam_w_mode; AdamW
  bool amsgrad = false;
  // SGD; Muon but for dampening
  double momentum = 0.0, dampening = 0.0;
  bool nesterov = false;
  // Adagrad
  double lr_decay = 0.0, initial_accumulator_value = 0.0;
  // Lamb
  double max_coeff = 10.0, min_coeff = 0.01;
  bool epsilon_inside_root = false;
  // Muon: times the learning rate is the rate of the matrices that it updates whole, and of all else
  double matrix_rate = 1.0, other_rate = 1.0;
};

struct SchedulerSettings {
  std::string type;  // empty: constant; WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle, LRRangeTest
  double warmup_min_lr = 0.0, warmup_max_lr = 0.001;
  std::int64_t warmup_num_steps = 1000, total_num_steps = 0;
  std::string warmup_type = "log";  // or linear
  double warmup_min_ratio = 0.0, cos_min_ratio = 1e-4;
  // OneCycle; sizes in applied steps, a stair count or a decay size of 0: none
  double cycle_min_lr = 0.0, cycle_max_lr = 0.0, decay_lr_rate = 0.0;
  std::int64_t cycle_first_step_size = 2000, cycle_second_step_size = 2000;
  std::int64_t cycle_first_stair_count = 0, cycle_second_stair_count = 0;
  std::int64_t decay_step_size = 0;
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8, cycle_max_mom = 0.9, decay_mom_rate = 0.0;
  // LRRangeTest
  double lr_range_test_min_lr = 1e-3, lr_range_test_step_rate = 1.0;
  std::int64_t lr_range_test_step_size = 2000;
  bool lr_range_test_staircase = false;
};

enum class LossScaleRule : std::uint8_t {
  deepspeed,  // DeepSpeed's scaler of ZeRO stages 1 to 3, with hysteresis
  apex,       // a counter of clean steps, as in apex's amp and in PyTorch's GradScaler
};

enum class OnOverflow : std::uint8_t {
  skip,   // the batch is lost
  retry,  // the same batch is run again at the halved scale
};

// Of fp16. optim/loss_scaler.h says how the rules differ.
struct LossScaleSettings {
  LossScaleRule rule = LossScaleRule::deepspeed;
  double loss_scale = 0.0;                // 0: dynamic; else static, and of the following only the ranges count
  std::int64_t initial_scale_power = 32;  // starts at 2 to this power, or at max_loss_scale if that is lower
  std::int64_t loss_scale_window = 1000;
  std::int64_t hysteresis = 2;          // deepspeed: overflows until the scale is halved
  bool consecutive_hysteresis = false;  // deepspeed: refilled by every clean step
  double min_loss_scale = 1.0;          // 0: none but what fp32 can hold
  double max_loss_scale = 0x1p126;      // growth ends here
  OnOverflow on_overflow = OnOverflow::skip;
};

// What NVIDIA's apex starts from where nothing else is said: 2^16, window 2000, no minimum, at most 2^24.
inline LossScaleSettings apex_loss_scale() {
  LossScaleSettings settings;
  settings.rule = LossScaleRule::apex;
  settings.initial_scale_power = 16;
  settings.loss_scale_window = 2000;
  settings.min_loss_scale = 0.0;
  settings.max_loss_scale = 0x1p24;
  return settings;
}

struct ZeroSettings {
  int stage = 0;
  std::int64_t max_live_parameters = 0;          // elements; 0: not set
  std::int64_t prefetch_bucket_size = 0;         // elements; 0: not set
  std::int64_t param_persistence_threshold = 0;  // elements, per segment
};

// Stops a run whose validation loss has not improved for a while (optim/early_stopping.h).
struct EarlyStoppingSettings {
  std::int64_t patience = 0;  // evaluations in a row without improvement; 0: never stops
  double min_delta = 0.0;     // an improvement is more than this
};

enum class SpikeAction : std::uint8_t { off, skip, stop };

// What becomes of a step whose loss or gradient norm jumps (optim/spike_guard.h).
struct SpikeGuardSettings {
  SpikeAction action = SpikeAction::off;
  double deviations = 6.0;    // above the mean
  std::int64_t window = 100;  // applied steps that mean and deviation are taken over
};

struct TrainingSettings {
  std::int64_t max_steps = 100;
  std::int64_t max_epochs = 0;  // 0: no limit
  std::uint64_t seed = 1234;
  std::int64_t eval_interval = 0, eval_steps = 10;
  EarlyStoppingSettings early_stopping;
  SpikeGuardSettings spike_guard;
  std::int64_t checkpoint_interval = 0, checkpoints_to_keep = 2;
  bool checkpoint_in_background = false;
  std::int64_t digest_interval = 0;  // steps between fingerprints of weights and moments; 0: none
  std::string output_dir;            // absolute
  std::string sample_prompt;         // gpt: empty: no sample at the end
  AccumulationOrder accumulation_order = AccumulationOrder::global;  // asked for: order_in_effect()
  bool fast_communication = false;                                   // communication_order "fast"
  std::int64_t report_delay = 0;  // steps by which the host reads losses late: 0 or 1
};

struct DeviceSettings {
  std::string type = "cpu";           // cuda, auto
  int threads = 0;                    // per rank; 0: not resolved yet ("auto"): the rank's share of the cores
  std::string communicator = "auto";  // shared, mpi; on GPUs nccl, staged
  int ranks_per_node = 0;             // 0: as they are
  std::string instruction_set = "auto";
  bool tf32 = false;           // cuda: fp32 products on tensor cores
  bool gelu_epilogue = false;  // cuda: GELU within products
};

struct Settings {
  ModelSettings model;
  DataSettings data;
  BatchSettings batch;
  OptimizerSettings optimizer;
  SchedulerSettings scheduler;
  PrecisionSettings precision;
  LossScaleSettings loss_scale;
  bool bf16_check_grad_overflow = true;  // bf16: what is not finite skips the step; false: it ends the run
  double gradient_clipping = 0.0;
  double gradient_predivide_factor = 1.0;
  bool prescale_gradients = false;
  std::int64_t steps_per_print = 10;
  bool wall_clock_breakdown = false;
  ZeroSettings zero;
  TrainingSettings training;
  std::int64_t checkpoint_every = 0;  // activation_checkpointing.every: recompute every k-th block
  DeviceSettings device;
};

// What the gradients of micro-batches are divided by before they are added up; the sum is divided by what is left of J.
// The same at every stage and number of ranks.
inline double predivision(const Settings& settings) {
  return settings.prescale_gradients ? static_cast<double>(settings.batch.micro_batches())
                                     : settings.gradient_predivide_factor;
}

// Stages 2 and 3 hold slices of the sums alone, so they reduce every micro-step, in global order whatever was asked
// for; with one micro-step both orders are the same.
constexpr AccumulationOrder order_in_effect(AccumulationOrder asked, int stage, std::int64_t accumulation) {
  return stage <= 1 && accumulation > 1 ? asked : AccumulationOrder::global;
}
inline AccumulationOrder order_in_effect(const Settings& settings) {
  return order_in_effect(settings.training.accumulation_order, settings.zero.stage, settings.batch.accumulation);
}

}  // namespace zt
