// What a user is told about a wrong config: a table of inputs and the words that must appear.
#include <set>

#include "catch_compat.h"
#include "config/keys.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

namespace {

struct WrongValue {
  const char* text;                // laid over the tiny model as b.json, on line 1
  std::vector<std::string> words;  // of the message
  int world_size = 1;
};

const std::vector<WrongValue> wrong_over_gpt = {
    // Unknown keys, at every level.
    {R"({"zero_optimisation": {"stage": 1}})",
     {"b.json:1: zero_optimisation: unknown key; did you mean zero_optimization?"}},
    {R"({"zero_optimization": {"stge": 1}})",
     {"zero_optimization.stge: unknown key", "did you mean zero_optimization.stage?"}},
    {R"({"zero_optimization": {"stage3_param_persitance_threshold": 1e5}})",
     {"did you mean zero_optimization.stage3_param_persistence_threshold?"}},
    {R"({"n_layer": 3})", {"n_layer: unknown key; it belongs to model.n_layer"}},
    {R"({"max_steps": 3})", {"it belongs to training.max_steps"}},
    {R"({"model": {"max_steps": 3}})", {"model.max_steps", "it belongs to training.max_steps"}},
    {R"({"training": {"max_step": 3}})", {"did you mean training.max_steps?"}},
    {R"({"training": {"stage": 3}})", {"training.stage", "it belongs to zero_optimization.stage"}},
    {R"({"stage": 3})", {"it belongs to zero_optimization.stage"}},
    {R"({"lr": 0.1})", {"it belongs to optimizer.params.lr"}},
    {R"({"optimizer": {"lr": 0.1}})", {"optimizer.lr", "it belongs to optimizer.params.lr"}},
    {R"({"optimizer": {"params": {"learning_rate": 0.1}}})", {"did you mean optimizer.params.lr?"}},
    {R"({"optimizer": {"params": {"whatever": 10}}})", {"whatever: unknown key", "known here: lr, betas"}},
    {R"({"lr_scheduler": {"type": "WarmupLR"}})", {"did you mean scheduler?"}},
    {R"({"batch_size": 3})", {"did you mean train_batch_size?"}},
    {R"({"fp16": {"enable": true}})", {"did you mean fp16.enabled?"}},
    {R"({"aio": {"queue_dept": 1}})", {"did you mean aio.queue_depth?"}},
    {R"({"qwertzuiop": 3})", {"qwertzuiop: unknown key"}},
    {R"({"model": {"layers": [1, 2]}})", {"model.layers: a key of model.type mlp; model.type is gpt here: remove it"}},
    {R"({"data": {"path": "x"}})", {"data.path: a key of data.type text, csv", "data.type is synthetic here"}},
    {R"({"optimizer": {"type": "SGD", "params": {"eps": 1e-8}}})",
     {"a key of optimizer.type Adam, AdamW, Lamb, Adagrad"}},
    {R"({"model": {"vocabulary_size": 9}})", {"did you mean model.vocab_size?"}},
    {R"({"model": {"hidden_size": 9}})", {"did you mean model.n_embd?"}},
    {R"({"model": {"hidden_act": "gelu"}})", {"did you mean model.activation_function?"}},
    {R"({"clip_grad_norm": 9})", {"did you mean gradient_clipping?"}},
    {R"({"zero": {"stage": 1}})", {"did you mean zero_optimization?"}},
    {R"({"num_epochs": 9})", {"did you mean training.max_epochs?"}},
    {R"({"training": {"log_interval": 9}})", {"did you mean steps_per_print?"}},
    {R"({"optimizer": {"params": {"epsilon": 1e-8}}})", {"did you mean optimizer.params.eps?"}},
    {R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_steps": 9}}})",
     {"did you mean scheduler.params.total_num_steps?"}},
    {R"({"training": {"early_stopping": {"enabled": true}}})", {"unknown key; known here: patience, min_delta"}},
    {R"({"training": {"gradient_clipping": 1}})", {"it stands at the top level: gradient_clipping"}},
    {R"({"enabled": true})", {"keys of that name: fp16.enabled, bf16.enabled"}},
    {R"({"training/max_steps": 3})", {"a path is written with dots: training.max_steps"}},
    {R"({"model.layers[0]": 3})", {"a path is written with dots, and a list is given as a whole"}},
    {R"({"model": {"activation": "relu"}})", {"model.type is gpt here: use model.activation_function"}},
    // Types.
    {R"({"amp": {"enabled": true, "loss_scale": "128"}})", {"(without the quotes: 128)"}},
    {R"({"model": {"bias": "True"}})", {"(without the quotes: true)"}},
    {R"({"optimizer": {"params": {"betas": ["0.9", "0.99"]}}})", {"(without the quotes: [0.9,0.99])"}},
    {R"({"optimizer": {"params": {"betas": "0.9, 0.99"}}})", {"(as a list: [0.9,0.99])"}},
    {R"({"optimizer": {"params": {"lr": "NaN"}}})", {"found \"NaN\"", "that is not a finite number"}},
    {R"({"fp16": {"enabled": "yes"}})", {"; write true"}},
    {R"({"gradient_clipping": "AUTO"})", {"did you mean \"auto\"?"}},
    {R"({"zero_optimization": 2})", {"write {\"stage\": 2}"}},
    {R"({"training": {"spike_guard": "skip"}})", {"write {\"action\": \"skip\"}"}},
    {R"({"communication_data_type": "float16"})", {"did you mean \"fp16\"?"}},
    {R"({"torch_autocast": {"enabled": true, "dtype": "bf16"}})", {"did you mean \"bfloat16\"?"}},
    {R"({"model": {"activation_function": "swish"}})", {"did you mean \"silu\"?"}},
    {R"({"data": {"type": "text", "path": "x", "format": "jsonl"}})", {"did you mean \"prompt_completion\"?"}},
    {R"({"data": {"type": "text", "path": "x", "tokenizer": "char"}})", {"did you mean \"characters\"?"}},
    {R"({"checkpoint": {"tag_validation": "often"}})", {"\"Fail\", in upper or lower case"}},
    {R"({"autotuning": {"enabled": true}})", {"zerotrain --dry-run"}},
    {R"({"train_batch_size": "8"})", {"found \"8\"; allowed: an integer from 1", "without the quotes: 8"}},
    {R"({"train_batch_size": true})", {"found true; allowed: an integer"}},
    {R"({"train_batch_size": 8.5})", {"found 8.5; allowed: an integer"}},
    {R"({"train_batch_size": 1e30})", {"found 1e30; allowed: an integer"}},
    {R"({"training": {"seed": 18446744073709551615}})", {"found 18446744073709551615; allowed: an integer from 0"}},
    {R"({"training": {"seed": -1}})", {"found -1; allowed: an integer from 0"}},
    {R"({"fp16": {"enabled": 1}})", {"found 1; allowed: true, false or \"auto\""}},
    {R"({"fp16": {"enabled": "true"}})", {"found \"true\"", "without the quotes: true"}},
    {R"({"fp16": {"loss_scale": true}})", {"found true; allowed: a number from 0"}},
    {R"({"fp16": {"loss_scale": -1}})", {"found -1; allowed: a number from 0"}},
    {R"({"fp16": {"loss_scale": 1e38}})", {"found 1e38; allowed: a number from 0 to 1e+37"}},
    {R"({"fp16": {"loss_scale": "dynamic"}})",
     {"found \"dynamic\"; allowed: a number from 0", "did you mean 0, which is dynamic?"}},
    {R"({"fp16": {"loss_scale_window": 0}})", {"found 0; allowed: an integer from 1"}},
    {R"({"fp16": {"loss_scale_window": true}})", {"found true; allowed: an integer from 1"}},
    {R"({"fp16": {"hysteresis": 0}})", {"found 0; allowed: an integer from 1"}},
    {R"({"fp16": {"min_loss_scale": 0}})", {"found 0; allowed: an integer from 1"}},
    {R"({"fp16": {"min_loss_scale": true}})", {"found true; allowed: an integer from 1"}},
    {R"({"fp16": {"min_loss_scale": 0.5}})", {"found 0.5; allowed: an integer from 1"}},
    {R"({"fp16": {"initial_scale_power": -1}})", {"found -1; allowed: an integer from 0 to 126"}},
    {R"({"fp16": {"consecutive_hysteresis": 2}})", {"found 2; allowed: true or false"}},
    {R"({"fp16": {"on_overflow": "retries"}})", {"found \"retries\"; allowed: \"skip\" or \"retry\""}},
    {R"({"fp16": {"on_overflow": true}})", {"found true; allowed: \"skip\" or \"retry\""}},
    {R"({"bf16": {"check_grad_overflow": 1}})", {"found 1; allowed: true or false"}},
    {R"({"training": {"early_stopping": 3}})",
     {"training.early_stopping: found 3; allowed: a section { ... }; write {\"patience\": 3}"}},
    {R"({"training": {"early_stopping": {"patience": -1}}})", {"found -1; allowed: an integer from 0"}},
    {R"({"training": {"early_stopping": {"patients": 1}}})", {"did you mean training.early_stopping.patience?"}},
    {R"({"training": {"eval_interval": 1, "early_stopping": {"patience": 1, "min_delta": -0.5}}})",
     {"found -0.5; allowed: a number from 0"}},
    {R"({"training": {"spike_guard": {"action": "warn"}}})",
     {"found \"warn\"; allowed: \"off\", \"skip\" or \"stop\""}},
    {R"({"training": {"spike_guard": {"action": "skip", "deviations": 0}}})", {"found 0; allowed: a number above 0"}},
    {R"({"training": {"spike_guard": {"action": "skip", "window": 1}}})", {"found 1; allowed: an integer from 2 to"}},
    {R"({"training": {"spike_guard": {"action": "skip", "window": true}}})", {"found true; allowed: an integer"}},
    {R"({"fp16": true})", {"fp16: found true; allowed: a section { ... }; write {\"enabled\": true}"}},
    {R"({"optimizer": "AdamW"})", {"allowed: a section { ... }; write {\"type\": \"AdamW\"}"}},
    {R"({"optimizer": {"params": {"betas": 0.9}}})", {"found 0.9; allowed: a list of 2 numbers from 0 to below 1"}},
    {R"({"optimizer": {"params": {"betas": [0.9, 1.0]}}})", {"found [0.9,1.0]; allowed: a list of 2 numbers"}},
    {R"({"training": {"sample_prompt": 3}})", {"found 3; allowed: a text in quotes"}},
    {R"({"training": {"output_dir": ""}})", {"found \"\"; allowed: a path in quotes"}},
    {R"({"": 3})", {"one mistake", "b.json:1: \"\": a key without a name: remove it"}},
    {R"({"training": {"": 3}})", {"one mistake", "b.json:1: training.\"\": a key without a name"}},
    // What fp32 cannot hold.
    {R"({"optimizer": {"params": {"lr": 1e39}}})", {"lr: found 1e39;", "fp32 holds no number beyond 3.4e38"}},
    {R"({"optimizer": {"params": {"lr": 1e-39}}})", {"lr: found 1e-39;", "below 1.2e-38 it becomes 0 in fp32"}},
    {R"({"optimizer": {"params": {"eps": 1e-300}}})", {"below 1.2e-38 it becomes 0 in fp32: write a larger one"}},
    {R"({"optimizer": {"params": {"betas": [0.9, 0.9999999999]}}})", {"in fp32 it is rounded to 1"}},
    {R"({"optimizer": {"params": {"betas": [1e-50, 0.9]}}})", {"below 1.2e-38"}},
    {R"({"optimizer": {"params": {"weight_decay": 1e300}}})", {"beyond 3.4e38"}},
    {R"({"gradient_clipping": 1e-45})", {"below 1.2e-38"}},
    {R"({"model": {"layer_norm_epsilon": 1e-46, "initializer_range": 1e100}})",
     {"2 mistakes", "below 1.2e-38", "3.4e38"}},
    {R"({"fp16": {"loss_scale": 1e-40}})", {"below 1.2e-38"}},
    {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-100}}})", {"below 1.2e-38"}},
    {R"({"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_step_rate": 1e99}}})", {"beyond 3.4e38"}},
    {R"({"amp": {"enabled": true, "min_loss_scale": 1e-99}})", {"below 1.2e-38"}},
    // Ranges.
    {R"({"train_batch_size": 0})", {"found 0; allowed: an integer from 1"}},
    {R"({"training": {"max_steps": 0}})", {"training.max_steps: found 0; allowed: an integer from 1"}},
    {R"({"zero_optimization": {"stage": 4}})", {"found 4; allowed: an integer from 0 to 3 or \"auto\""}},
    {R"({"model": {"attn_pdrop": 1.0}})", {"found 1.0; allowed: a number from 0 to below 1"}},
    {R"({"gradient_clipping": -1})", {"found -1; allowed: a number from 0 or \"auto\""}},
    {R"({"steps_per_print": 0})", {"found 0; allowed: an integer from 1"}},
    {R"({"fp16": {"initial_scale_power": 200}})", {"found 200; allowed: an integer from 0 to 126"}},
    {R"({"device": {"threads": 0}})", {"device.threads: found 0; allowed: an integer from 1"}},
    {R"({"data": {"samples": 1}})", {"found 1; allowed: an integer from 10"}},
    // Words.
    {R"({"model": {"activation_function": "gelu_ne"}})",
     {"\"gelu_new\", \"gelu\", \"relu\" or \"silu\"", "did you mean \"gelu_new\"?"}},
    {R"({"model": {"type": "gtp"}})",
     {"model.type: found \"gtp\"; allowed: \"gpt\" or \"mlp\"; did you mean \"gpt\"?"}},
    {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cubic"}}})", {"allowed: \"log\" or \"linear\""}},
    {R"({"optimizer": {"type": "Adamm"}})", {"found \"Adamm\"", "did you mean \"Adam\"?"}},
    // "auto" where nothing stands behind it.
    {R"({"optimizer": {"type": "auto"}})", {"optimizer.type: found \"auto\"", "use \"AdamW\""}},
    {R"({"steps_per_print": "auto"})", {"found \"auto\"; allowed: an integer from 1"}},
    {R"({"model": {"vocab_size": 1}})", {"found 1; allowed: an integer from 2"}},
    // What is not done here says what to use.
    {R"({"optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 4, "cuda_aware": true}}})",
     {"one mistake", "found \"OneBitAdam\"", "use \"AdamW\""}},
    {R"({"optimizer": {"type": "RMSprop", "params": {"alpha": 0.9}}})",
     {"one mistake", "found \"RMSprop\"", "Adam, AdamW, SGD, Adagrad, Lion, Lamb and Muon"}},
    {R"({"optimizer": {"type": "Lion", "params": {"momentum": 0.9}}})", {"found 0.9", "use \"betas\""}},
    {R"({"optimizer": {"type": "Lion", "params": {"eps": 1e-8}}})", {"Lion divides by nothing"}},
    {R"({"optimizer": {"type": "Lion", "params": {"amsgrad": true}}})",
     {"a key of optimizer.type Adam, AdamW; optimizer.type is Lion here"}},
    {R"({"optimizer": {"type": "Lamb", "params": {"amsgrad": true, "momentum": 0.9}}})",
     {"2 mistakes", "Lamb has no such variant", "use \"betas\""}},
    {R"({"optimizer": {"type": "Lamb", "params": {"min_coeff": 11}}})", {"found 11, above max_coeff 10"}},
    {R"({"optimizer": {"type": "Lamb", "params": {"max_coeff": 0}}})", {"found 0; allowed: a number above 0"}},
    {R"({"optimizer": {"type": "AdamW", "params": {"max_coeff": 0.3}}})", {"a key of optimizer.type Lamb"}},
    {R"({"optimizer": {"type": "Muon", "params": {"lr": 0, "muon_lr": 0.1, "momentum": 1, "ns_method": "cubic"}}})",
     {"3 mistakes", "found 0.1 beside lr 0", "momentum: found 1", "allowed: \"gram\" or \"standard\""}},
    {R"({"optimizer": {"type": "AdamW", "params": {"muon_lr": 0.1}}})", {"a key of optimizer.type Muon"}},
    {R"({"optimizer": {"params": {"max_grad_norm": 1.0}}})", {"use the top-level key gradient_clipping"}},
    {R"({"optimizer": {"type": "SGD", "params": {"betas": [0.9, 0.99]}}})", {"SGD averages", "use \"momentum\""}},
    {R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})", {"found 0.9", "use \"betas\""}},
    {R"({"optimizer": {"type": "Adagrad", "params": {"betas": [0.9, 0.99]}}})", {"a sum of squares and no momentum"}},
    {R"({"optimizer": {"type": "Adagrad", "params": {"momentum": 0.9}}})", {"found 0.9", "use \"AdamW\""}},
    {R"({"optimizer": {"type": "SGD", "params": {"lr_decay": 0.1}}})", {"found 0.1", "use a scheduler"}},
    {R"({"optimizer": {"type": "Adagrad", "params": {"eps": 0}}})", {"found 0; allowed: a number above 0"}},
    {R"({"optimizer": {"type": "Adagrad", "params": {"initial_accumulator_value": -1}}})",
     {"found -1; allowed: a number from 0"}},
    {R"({"optimizer": {"params": {"weight_decay_exclude": ["layernorm"]}}})",
     {"found [\"layernorm\"]; allowed: a list of \"bias\" and \"layer_norm\"; did you mean \"layer_norm\"?"}},
    {R"({"optimizer": {"params": {"weight_decay_exclude": "bias"}}})",
     {"found \"bias\"; allowed: a list of \"bias\" and \"layer_norm\" (as a list: [\"bias\"])"}},
    {R"({"scheduler": {"type": "CosineAnnealingLR"}})", {"use WarmupCosineLR"}},
    {R"({"scheduler": {"type": "OneCycleLR"}})", {"did you mean \"OneCycle\"?"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"decay_step_size": 3}}})",
     {"2 mistakes", "cycle_min_lr: missing", "cycle_max_lr: missing"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": "auto", "cycle_max_lr": 1}}})",
     {"cycle_min_lr: found \"auto\"; allowed: a number from 0"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.01}}})",
     {"cycle_min_lr: found 0.1, above cycle_max_lr 0.01", "exchange them"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1, "cycle_min_mom": 0.95}}})",
     {"cycle_min_mom: found 0.95, above cycle_max_mom 0.9 (the default)", "lower it"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1, "cycle_max_mom": 1}}})",
     {"cycle_max_mom: found 1; allowed: a number from 0 to below 1"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1,
         "cycle_first_step_size": 0}}})",
     {"found 0; allowed: an integer from 1 or \"auto\""}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1, "cycle_first_step_size": 2,
         "decay_step_size": 1, "decay_mom_rate": 0.05}}, "training": {"max_steps": 25}})",
     {"decay_mom_rate: found 0.05, which raises momentum to 1 or more within training.max_steps",
      "as with a rate of 0.0055"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1, "warmup_num_steps": 5}}})",
     {"warmup_num_steps: found 5; OneCycle rises for cycle_first_step_size steps: use that key"}},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0, "cycle_max_lr": 1, "warmup_max_lr": "auto"}}})",
     {"found \"auto\"; OneCycle rises to cycle_max_lr"}},
    {R"({"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_min_lr": 0}}})",
     {"found 0; allowed: a number above 0"}},
    {R"({"scheduler": {"type": "LRRangeTest", "params": {"lr_range_test_step_size": 2.5}}})",
     {"found 2.5; allowed: an integer from 1"}},
    {R"({"scheduler": {"type": "LRRangeTest", "params": {"total_num_steps": 9}}})", {"use training.max_steps"}},
    {R"({"scheduler": {"type": "LRRangeTest", "params": {"cycle_max_lr": 9}}})",
     {"a key of scheduler.type OneCycle; scheduler.type is LRRangeTest here: remove it"}},
    {R"({"scheduler": {"type": "WarmupLR", "params": {"cycle_max_lr": 1}}})",
     {"a warm-up rises to warmup_max_lr: use that key, or \"type\": \"OneCycle\""}},
    {R"({"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_num_steps": 2, "warmup_max_lr": 1}}})",
     {"takes its highest rate from optimizer.params.lr"}},
    {R"({"amp": {"enabled": true, "opt_level": "O1", "master_weights": true}})",
     {"amp.master_weights: found true, but opt_level O1", "remove the key, or use opt_level O2 or O3"}},
    {R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}, "device": {"type": "cuda"}})",
     {"offload_optimizer.device: found \"cpu\", but on a GPU this version", "set it to \"none\"",
      "or set device.type to \"cpu\""}},
    {R"({"zero_optimization": {"offload_optimizer": "cpu"}})",
     {"offload_optimizer: found \"cpu\"", "write {\"device\": \"cpu\"}"}},
    {R"({"zero_optimization": {"offload_param": {"device": "nvme", "nvme_path": "/x"}}})",
     {"one mistake", "found \"nvme\""}},
    {R"({"zero_optimization": {"cpu_offload": true, "offload_optimizer": {"device": "none"}}})",
     {"cpu_offload: an old form of \"zero_optimization.offload_optimizer.device\": \"cpu\", which is given too"}},
    {R"({"zero_optimization": {"cpu_offload": "yes"}})", {"cpu_offload: found \"yes\"; allowed: true or false"}},
    {R"({"fp32_allreduce": true, "communication_data_type": "fp16"})",
     {"fp32_allreduce: an old form of \"communication_data_type\": \"fp32\", which is given too"}},
    {R"({"zero_optimization": {"zero_quantized_weights": true}})", {"ZeRO++", "set it to false"}},
    {R"({"zero_optimization": {"zero_hpz_partition_size": 8}})", {"found 8", "set it to 1"}},
    {R"({"zero_optimization": {"mics_shard_size": 8}})", {"MiCS", "remove it"}},
    {R"({"zero_optimization": {"zenflow": {"topk_ratio": 0.1}}})", {"zenflow", "remove the section"}},
    {R"({"pipeline": {"stages": 2}})", {"pipeline: this program is data parallel", "zero_optimization.stage"}},
    {R"({"elasticity": {"enabled": true, "whatever": 1}})", {"one mistake", "elasticity", "remove the section"}},
    {R"({"model": {"pretrained": 5}})", {"model.pretrained: found 5", "a path in quotes"}},
    {R"({"model": {"freeze": "wte"}})",
     {"model.freeze: found \"wte\"; allowed: a list of texts (as a list: [\"wte\"])"}},
    {R"({"training": {"checkpoint_interval": -5}})", {"training.checkpoint_interval", "-5", "an integer from 0"}},
    {R"({"training": {"gradient_accumulation_order": "locally"}})", {"found \"locally\"", "\"global\" or \"local\""}},
    {R"({"training": {"communication_order": "loose"}})", {"found \"loose\"", "\"exact\" or \"fast\""}},
    {R"({"device": {"type": "gpu"}})", {"device.type: found \"gpu\"; GPUs are \"cuda\""}},
    {R"({"device": {"type": "cpu", "communicator": "nccl"}})",
     {"device.communicator: found \"nccl\", which is for GPUs", "use \"shared\" or \"mpi\""}},
    {R"({"device": {"type": "cuda", "communicator": "mpi"}})",
     {"device.communicator: found \"mpi\", which is for CPUs", "use \"nccl\" or \"staged\""}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": ["y"]}})",
     {"one mistake", "data.type: found \"csv\", but model.type is \"gpt\", which takes tokens: use \"text\""}},
    {R"({"data": {"type": "idx", "images": "x", "labels": "y"}})", {"one mistake", "found \"idx\"", "or an mlp"}},
    {R"({"data": {"type": "text", "path": "x", "format": "prompts"}})",
     {"data.format: found \"prompts\"", "\"plain\", \"prompt_completion\" or \"auto\""}},
    {R"({"communication_data_type": "fp8"})", {"found \"fp8\"", "\"fp32\", \"bf16\", \"fp16\" or null"}},
    // Rules across keys.
    {R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})",
     {"b.json:1: fp16.enabled: fp16 and bf16 are both enabled: set one of them to false; bf16.enabled stands at "
      "b.json:1"}},
    {R"({"fp16": {"enabled": true}, "torch_autocast": {"enabled": true},
         "amp": {"enabled": true}, "bf16": {"enabled": true}})",
     {"one mistake", "fp16, bf16, amp and torch_autocast are all enabled: set all but one to false",
      "bf16.enabled stands at b.json:2, amp.enabled stands at b.json:2, torch_autocast.enabled stands at b.json:1"}},
    {R"({"model": {"n_head": 5}})",
     {"model.n_head: found 5, which does not divide model.n_embd 64; the nearest that do: 4 and 8"}},
    {R"({"model": {"n_head": 100}})", {"found 100, which does not divide model.n_embd 64; the nearest that do: 64"}},
    {R"({"data": {"task": "regression"}})", {"no tokens for model.type \"gpt\": use \"task\": \"tokens\""}},
    {R"({"data": {"type": "text"}})", {"data.path: missing"}},
    {R"({"data": {"type": "text", "path": "x", "tokenizer": "byte"}})",
     {"data.tokenizer: found \"byte\"", "did you mean \"bytes\"?"}},
    {R"({"data": {"type": "text", "path": "x", "validation_fraction": 0}, "training": {"eval_interval": 2}})",
     {"data.validation_fraction: 0 leaves nothing", "training.eval_interval"}},
    {R"({"scheduler": {"type": "WarmupDecayLR"}})", {"scheduler.params.total_num_steps: missing"}},
    {R"({"scheduler": {"params": {"warmup_num_steps": 3}}})", {"scheduler.type: missing"}},
    {R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 10}}})",
     {"found 10, fewer than warmup_num_steps 1000 (the default)"}},
    {R"({"optimizer": {"type": "AdamW", "params": {"adam_w_mode": false}}})", {"use \"type\": \"Adam\" for L2"}},
    {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0.1, "warmup_max_lr": 0.01}}})",
     {"warmup_min_lr: found 0.1, above warmup_max_lr 0.01"}},
    {R"({"optimizer": {"type": "SGD", "params": {"nesterov": true}}})", {"nesterov: true needs momentum above 0"}},
    {R"({"optimizer": {"type": "SGD", "params": {"nesterov": true, "momentum": 0.9, "dampening": 0.1}}})",
     {"nesterov: true needs", "no dampening"}},
    {R"({"fp16": {"enabled": true, "initial_scale_power": 2, "min_loss_scale": 8}})",
     {"min_loss_scale: found 8, above the first scale, 2 to the 2"}},
    {R"({"fp16": {"enabled": true, "loss_scale": 1024, "on_overflow": "retry"}})",
     {"on_overflow: found \"retry\"", "fp16.loss_scale 1024 is static", "use \"skip\", or set fp16.loss_scale to 0"}},
    {R"({"training": {"early_stopping": {"patience": 3}}})",
     {"patience: found 3, which counts evaluations, but training.eval_interval is 0", "or set patience to 0"}},
    {R"({"training": {"eval_interval": 1, "early_stopping": {"min_delta": 0.1}}})",
     {"patience: missing: min_delta alone stops nothing"}},
    {R"({"training": {"spike_guard": {"window": 20}}})", {"action: missing", "\"skip\" or \"stop\""}},
    {R"({"data_types": {"grad_accum_dtype": "bf16"}, "fp16": {"enabled": true}})",
     {"allowed with gradients in fp16 (precision fp16): \"fp32\" or \"fp16\""}},
    {R"({"zero_optimization": {"prefetch_bucket_size": 1, "stage3_prefetch_bucket_size": 2}})",
     {"an old name of", "remove one of them"}},
};

const std::vector<WrongValue> wrong_over_mlp = {
    {R"({"model": {"layers": [8]}})", {"model.layers: found [8]; allowed: a list of at least 2 integers from 1"}},
    {R"({"model": {"layers": [8, 0, 1]}})", {"found [8,0,1]; allowed: a list of at least 2 integers from 1"}},
    {R"({"model": {"layers": [8, 2.5]}})", {"found [8,2.5]"}},
    {R"({"model": {"loss": "cross_entropy"}})", {"model.layers: the last entry is 1", "at least 2, or use \"mse\""}},
    {R"({"model": {"n_layer": 2}})", {"a key of model.type gpt; model.type is mlp here"}},
    {R"({"data": {"type": "text", "path": "x"}})",
     {"model.type is \"mlp\", which takes no text: use \"csv\" or \"idx\""}},
    {R"({"data": {"type": "csv", "path": "x.csv"}})",
     {"data.target: missing", "column names or numbers (the first is 1)"}},
    {R"({"data": {"type": "csv", "target": "y"}})", {"data.path: missing", "the CSV file"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": []}})", {"data.target: found []"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": [0]}})", {"found [0]", "the first is 1"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": [1.5]}})", {"found [1.5]"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": {"y": 1}}})", {"data.target: found"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": ["y", "y"]}})", {"data.target: names \"y\" twice"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": ["y", "z"]}})",
     {"model.layers: the last entry is 1, but data.target names 2 column(s)"}},
    {R"({"model": {"layers": [8, 3], "loss": "cross_entropy"},
         "data": {"type": "csv", "path": "x.csv", "target": ["y", "z", "w"]}})",
     {"data.target: names 3 columns", "one column of classes"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": "y", "delimiter": "tab"}})", {"data.delimiter", "\"\\t\""}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": "y", "normalise": true}})",
     {"did you mean data.normalize?"}},
    {R"({"data": {"type": "csv", "path": "x.csv", "target": "y", "validation_fraction": 0},
         "training": {"eval_interval": 5}})",
     {"data.validation_fraction: 0 leaves nothing"}},
    {R"({"data": {"type": "idx", "images": "x", "labels": "y"}})", {"model.loss", "labels of idx data are classes"}},
    {R"({"model": {"layers": [8, 3], "loss": "cross_entropy"}, "data": {"type": "idx", "images": "x"}})",
     {"data.labels: missing"}},
    {R"({"model": {"layers": [8, 3], "loss": "cross_entropy"},
         "data": {"type": "idx", "images": "x", "labels": "y", "validation_images": "z"}})",
     {"data.validation_labels: missing, and data.validation_images is given"}},
    {R"({"model": {"layers": [8, 3], "loss": "cross_entropy"}, "training": {"eval_interval": 5},
         "data": {"type": "idx", "images": "x", "labels": "y"}})",
     {"data.validation_images: missing, so there is nothing for the evaluations"}},
    {R"({"model": {"activation_function": "relu"}})", {"model.type is mlp here: use model.activation"}},
    {R"({"model": {"layers": "8,16,1"}})", {"(as a list: [8,16,1])"}},
    {R"({"model": {"layers": "8,0,1"}})",
     {"one mistake", "found \"8,0,1\"; allowed: a list of at least 2 integers from 1 to"}},
    {R"({"data": {"task": "tokens"}})", {"model.type \"mlp\" takes none: use \"task\": \"regression\""}},
};

void check_refused(const char* base, const WrongValue& wrong) {
  const std::string message = refusal_of({base, wrong.text}, {}, wrong.world_size);
  INFO(wrong.text << "\n" << message);
  for (const std::string& word : wrong.words) {
    INFO("missing: " << word);
    CHECK(message.find(word) != std::string::npos);
  }
}

struct WrongText {
  std::string text;
  std::vector<std::string> words;
};

const std::vector<WrongText> wrong_syntax = {
    {"", {"a.json:1:1: the file is empty"}},
    {"  \n// nothing\n", {"the file holds comments only: a config is one object"}},
    {"\xff\xfe{\0", {"a.json: the file is UTF-16: save it as UTF-8"}},
    {"{ \"a\": NaN }", {"a.json:1:8: NaN and Infinity are not allowed: give a number"}},
    {"{ \"a\": [-Infinity] }", {"NaN and Infinity are not allowed"}},
    {"{ \"a\": \xe2\x80\x9cx\xe2\x80\x9d }", {"this is a typographic quote: write straight ones"}},
    {"{ \xe2\x80\x9e"
     "a\": 1 }",
     {"this is a typographic quote"}},
    {"{ \"a\": 12,5 }", {"a.json:1:10: decimals follow a point, not a comma: 12.5"}},
    {"{ \"a\": 1,, \"b\": 2 }", {"one comma too many"}},
    {"[1]", {"a.json:1:1: a config is one object"}},
    {"\n\"optimizer\": {}", {"a.json:2:1: a fragment without its outer braces: put {"}},
    {"{\n  \"a\": True\n}", {"a.json:2:8: write true", "\n      \"a\": True\n", "\n           ^"}},
    {"{\n  \"a\": None\n}", {"write null"}},
    {"{ \"a\": 1 \n \"b\": 2 }", {"a.json:2:2: a comma is missing before this"}},
    {"{ \"a\": /home/x }", {"text must stand in double quotes"}},
    {"{ \"a\": bytes }", {"text must stand in double quotes"}},
    {"{ 'a': 1 }", {"keys are written in double quotes"}},
    {"{ \"a\": 'b' }", {"strings are written in double quotes"}},
    {"{ a: 1 }", {"keys must stand in double quotes"}},
    {"{ \"a\" 1 }", {"a : should follow the key \"a\""}},
    {"{ \"a\": }", {"the value of a is missing"}},
    {"{ \"a\": 01 }", {"not a number as JSON writes it"}},
    {"{ \"a\": .5 }", {"not a number as JSON writes it"}},
    {"{ \"a\": 1e999 }", {"this number is too large"}},
    {"{ \"a\": \"x }\n", {"a.json:1:8: this string is not closed on its line"}},
    {"{ \"a\": \"C:\\data\" }", {"a backslash inside a string is written \\\\"}},
    {"{ \"a\": [1, 2 }", {"inside the list a, a comma or ] should stand here"}},
    {"{ \"a\": { \"b\": 1, ", {"the file ends before the { of line 1 (a) is closed with }"}},
    {"{ \"a\": 1 } }", {"one } too many"}},
    {"{ \"a\": 1 } x", {"nothing may follow its last }"}},
    {"{ /* open \n}", {"a.json:1:3: this comment is not closed"}},
    {"{ \"a\": [1,,2] }", {"a.json:1:11: one comma too many"}},
    {"{ ,\"a\": 1 }", {"a.json:1:3: one comma too many"}},
    {"{ \"a\": \"\xff\" }", {"not valid UTF-8"}},
    {std::string(200, '['), {"a config is one object"}},
    {"{ \"a\": " + std::string(200, '[') + " }", {"nested more than 64 deep"}},
    {"{\n \"a\": 1,\n \"b\": { \"c\": 1,\n \"c\": 2 } }", {"a.json:4: b.c: given twice, first on line 3: remove one"}},
};

}  // namespace

TEST_CASE("a wrong value is told with key, place, what was found and what is allowed") {
  CHECK(wrong_over_gpt.size() >= 60);
  for (const WrongValue& wrong : wrong_over_gpt) check_refused(tiny_gpt(), wrong);
  for (const WrongValue& wrong : wrong_over_mlp) check_refused(tiny_mlp(), wrong);
}

TEST_CASE("a syntax error is told with file, line, column and a caret") {
  for (const WrongText& wrong : wrong_syntax) {
    const std::string message = refusal_of({wrong.text});
    INFO(wrong.text << "\n" << message);
    for (const std::string& word : wrong.words) {
      INFO("missing: " << word);
      CHECK(message.find(word) != std::string::npos);
    }
  }
}

TEST_CASE("all mistakes are listed at once, each with its place") {
  const std::string message = refusal_of({tiny_gpt(),
                                          "{\n \"fp16\": {\"enabled\": 3},\n \"stagee\": 1,\n"
                                          " \"training\": {\"max_steps\": -1} }"},
                                         {"steps_per_print=x"});
  INFO(message);
  CHECK(message.starts_with("4 mistakes in the config:\n"));
  CHECK(message.find("b.json:2: fp16.enabled") != std::string::npos);
  CHECK(message.find("b.json:3: stagee") != std::string::npos);
  CHECK(message.find("b.json:4: training.max_steps") != std::string::npos);
  CHECK(message.find("--set: steps_per_print: found \"x\"") != std::string::npos);
}

TEST_CASE("a mistake has no followers, and the list of a section's keys comes once") {
  std::string text = tiny_gpt();
  text.replace(text.find("model"), 5, "Model");
  std::string message = refusal_of({text});
  INFO(message);
  CHECK(message.starts_with("one mistake"));
  CHECK(message.find("did you mean model?") != std::string::npos);
  message = refusal_of({tiny_gpt(), R"({"training": {"early_stopping": {"abcdef": 1, "ghijkl": 2}}})"});
  INFO(message);
  CHECK(message.find("known here") == message.rfind("known here"));
  CHECK(message.find("ghijkl: unknown key") != std::string::npos);
}

TEST_CASE("synthetic tokens need a number of ids") {
  const std::string message = refusal_of({tiny_gpt()}, {"model.vocab_size=auto"});
  INFO(message);
  CHECK(message.find("--set: model.vocab_size: \"auto\" comes from a tokenizer") != std::string::npos);
  CHECK(message.find("give a number") != std::string::npos);
}

TEST_CASE("a missing model and missing data are asked for") {
  const std::string message = refusal_of({"{\"train_batch_size\": 8}"});
  INFO(message);
  CHECK(message.starts_with("2 mistakes"));
  CHECK(message.find("model.type: missing") != std::string::npos);
  CHECK(message.find("data.type: missing") != std::string::npos);
}

TEST_CASE("a file that cannot be read is named") {
  const ConfigDirectory directory;
  std::filesystem::create_directories(directory.path() / "d");
  const auto message = [&](const std::vector<std::string>& files) {
    try {
      resolve_config(files, {}, 1, directory.options());
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message({"none.json"}).find("config file none.json does not exist") != std::string::npos);
  CHECK(message({"d"}).find("config file d is a directory") != std::string::npos);
  CHECK(message({}).find("--config FILE") != std::string::npos);
}

TEST_CASE("--set is told what is wrong with it") {
  const auto message = [](const std::string& set) { return refusal_of({tiny_gpt()}, {set}); };
  CHECK(message("training.max_steps").find("= is missing") != std::string::npos);
  CHECK(message("=3").find("empty part") != std::string::npos);
  CHECK(message("training..max_steps=3").find("empty part") != std::string::npos);
  CHECK(message("model.layers=[1,").find("--set model.layers:1:4: the value ends") != std::string::npos);
  CHECK(message("train_batch_size.x=3").find("train_batch_size is 8, not a section") != std::string::npos);
  CHECK(message("model.type=mlp").find("is mlp here: replace the section: --set 'model={\"type\": \"mlp\", ...}'") !=
        std::string::npos);
  CHECK(message("model.layers=[8, 1]").find("model.type is gpt here: remove it") != std::string::npos);
  CHECK(message("train_batch_size=\"0\"").find("without the quotes") == std::string::npos);
  CHECK(message("training.max_steps=1e40").find("of at most 64 bits") != std::string::npos);
  CHECK(message("zero_optimization.stage=1e40").find("64 bits") == std::string::npos);
  CHECK(message("scheduler.type=WarmupDecayLR").find("--set: scheduler.params.total_num_steps: missing") !=
        std::string::npos);
  CHECK(message("model={\"type\": \"gpt\", \"type\": \"mlp\"}").find("--set: model.type: given twice") !=
        std::string::npos);
  CHECK(message("model={\"type\": gpt}").find("--set model:1:10: text must stand in double quotes") !=
        std::string::npos);
  CHECK(message("model={\"type\": 1} x").find("the value has ended") != std::string::npos);
  CHECK(message("model.n_head=1e9").find("found 1e9; allowed") != std::string::npos);
  CHECK(message("optimizer={\"params\": {\"lr\": 1e55}}").find("--set: optimizer.params.lr: found 1e55") !=
        std::string::npos);
  CHECK(refusal_of({tiny_gpt()}, {"bfloat16.enabled=true", "bf16.enabled=true"})
            .find("--set: bfloat16: an old name of bf16, which is given too: remove one of them") != std::string::npos);
  CHECK(refusal_of({tiny_gpt()}, {"bf16={\"enabled\": true}", "bfloat16.enabled=true"}).find("an old name of bf16") !=
        std::string::npos);
  CHECK(refusal_of({tiny_gpt()}, {"bfloat16.enabled=true", "bfloat16.enabled=false"}) == "accepted");
  CHECK(message("training.max_stepss=3").find("--set: training.max_stepss: unknown key") != std::string::npos);
}

TEST_CASE("a batch that does not fit says the sum and the nearest values") {
  struct Row {
    const char* text;
    int ranks;
    const char* words;
  };
  const std::string base =
      std::string(tiny_mlp()).replace(std::string(tiny_mlp()).find("\"train_batch_size\": 8,"), 22, "");
  for (const Row& row : std::vector<Row>{
           {R"({"train_batch_size": 16})", 3, "found 16, not a multiple of 3 ranks; the nearest that fit: 15 and 18"},
           {R"({"train_batch_size": 2})", 3, "not a multiple of 3 ranks; the least that fits: 3"},
           {R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4})", 2,
            "not a multiple of train_micro_batch_size_per_gpu 4 x 2 ranks = 8; the nearest that fit: 24 and 32"},
           {R"({"train_batch_size": 10, "gradient_accumulation_steps": 4})", 1,
            "not a multiple of gradient_accumulation_steps 4 x 1 rank = 4; the nearest that fit: 8 and 12"},
           {R"({"train_batch_size": 4480, "train_micro_batch_size_per_gpu": 560, "gradient_accumulation_steps": 1})", 2,
            "x gradient_accumulation_steps 1 x 2 ranks = 1120: set train_batch_size to 1120, or "
            "gradient_accumulation_steps to 4, or run on 8 ranks"},
           {R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})", 1,
            "= 4: set train_batch_size to 4"},
           {R"({"gradient_accumulation_steps": 4})", 1, "gradient_accumulation_steps alone is not enough"},
           {R"({})", 1, "train_batch_size: missing: give train_batch_size"},
           {R"({"train_batch_size": "auto", "gradient_accumulation_steps": "auto"})", 1, "(\"auto\" counts as absent)"},
           {R"({"train_micro_batch_size_per_gpu": 1e9, "gradient_accumulation_steps": 1e9})", 100,
            "1000000000 x gradient_accumulation_steps 1000000000 x 100 ranks is more than 1000000000 samples a "
            "step: lower one of them"},
           {R"({"train_micro_batch_size_per_gpu": 1e9})", 2, "x gradient_accumulation_steps 1 x 2 ranks is more than"},
           {R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1e9, "gradient_accumulation_steps": 1e9})", 4,
            "train_micro_batch_size_per_gpu: 1000000000 x gradient_accumulation_steps"},
           {R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1e9})", 2,
            "train_micro_batch_size_per_gpu: 1000000000 x 2 ranks is more than 1000000000"},
           {R"({"train_batch_size": 999999999, "train_micro_batch_size_per_gpu": 2e8})", 3,
            "= 600000000; the nearest that fits: 600000000"},
           {R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 1})", 2,
            "set train_batch_size to 16, or train_micro_batch_size_per_gpu to 4, or run on 1 rank"},
       }) {
    const std::string message = refusal_of({base, row.text}, {}, row.ranks);
    INFO(row.text << "\n" << message);
    CHECK(message.find(row.words) != std::string::npos);
  }
}

TEST_CASE("misspelt words find the nearest") {
  CHECK(edit_distance("stage", "stgae") == 1);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(nearest_word("Stagee", {"state", "stage"}) == "stage");
  CHECK(nearest_word("x", {"lr", "eps"}).empty());
}

TEST_CASE("every row of the table has help and says what becomes of the key") {
  std::set<std::string> seen;
  for (const Key& key : key_table()) {
    INFO(key.path);
    CHECK_FALSE(key.help.empty());
    if (key.kind == KeyKind::refused) CHECK_FALSE(key.text.empty());
    for (const std::string& type : key.types.empty() ? std::vector<std::string>{""} : key.types) {
      CHECK(seen.insert(key.path + " " + type).second);  // one row for a key and type
    }
    CHECK(key_help().find(key.path) != std::string::npos);
  }
  // Every key stands in a section that has a row.
  for (const Key& key : key_table()) {
    const std::size_t dot = key.path.rfind('.');
    if (dot != std::string::npos) CHECK(seen.contains(key.path.substr(0, dot) + " "));
  }
}
