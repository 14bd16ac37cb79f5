// DeepSpeed's other sections: activation checkpointing, profilers, monitors, and what is refused as a whole.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_activation_checkpointing(std::vector<Key>& t) {
  const std::string name = "activation_checkpointing.";
  const std::string why =
      "it switches nothing on (nor does it in DeepSpeed, unless the model asks): use "
      "activation_checkpointing.every";
  for (const char* key : {"partition_activations", "cpu_checkpointing", "contiguous_memory_optimization",
                          "synchronize_checkpoint_boundary", "profile"}) {
    t.push_back(notice_key(boolean, name + key, "of DeepSpeed's checkpoint function", why).unless({false}));
  }
  t.push_back(notice_key(anything, name + "number_checkpoints", "of DeepSpeed's checkpoint function", why)
                  .unless({nullptr, false}));
}

// A section that can be switched on and has no effect; keys below it are known, so a misspelt one is found.
struct Switchable {
  const char* name;
  const char* help;
  const char* why;
  std::vector<std::pair<const char*, KeyType>> keys;
};

void add_switchable(std::vector<Key>& t) {
  const std::vector<Switchable> sections = {
      {"wandb",
       "a web service's curves",
       "nothing is sent to a server: metrics.jsonl in the output directory holds the same",
       {{"group", anything}, {"team", anything}, {"project", anything}, {"job_name", anything}}},
      {"comet",
       "a web service's curves",
       "nothing is sent to a server: metrics.jsonl in the output directory holds the same",
       {{"samples_log_interval", anything},
        {"project", anything},
        {"workspace", anything},
        {"api_key", anything},
        {"experiment_name", anything},
        {"experiment_key", anything},
        {"online", anything},
        {"mode", anything}}},
  };
  for (const Switchable& entry : sections) {
    const std::string name = entry.name;
    t.push_back(used_key(section, name, entry.help));
    t.push_back(notice_key(boolean, name + ".enabled", "switches the section on", entry.why).unless({false}));
    for (const auto& [key, type] : entry.keys) {
      // The switch gives the section's one notice; the rest of an unused section needs no line each.
      Key row = notice_key(type, name + "." + key, "of this section", "");
      t.push_back(row);
    }
  }
}

void add_monitors(std::vector<Key>& t) {
  t.push_back(used_key(section, "csv_monitor", "loss, learning rate and loss scale over samples, a CSV file for each"));
  t.push_back(
      used_key(boolean, "csv_monitor.enabled", "writes Train_Samples_train_loss.csv and its like").standard(false));
  t.push_back(used_key(string, "csv_monitor.output_path",
                       "the files lie in the folder job_name below it; empty: csv_monitor in training.output_dir")
                  .standard(""));
  t.push_back(used_key(string, "csv_monitor.job_name", "the folder's name").standard("DeepSpeedJobName"));

  t.push_back(used_key(section, "tensorboard", "the same curves for TensorBoard"));
  t.push_back(used_key(boolean, "tensorboard.enabled", "writes an event file").standard(false));
  t.push_back(used_key(string, "tensorboard.output_path",
                       "the file lies in the folder job_name below it; empty: tensorboard in training.output_dir")
                  .standard(""));
  t.push_back(used_key(string, "tensorboard.job_name", "the folder's name").standard("DeepSpeedJobName"));
}

void add_flops_profiler(std::vector<Key>& t) {
  const std::string name = "flops_profiler.";
  t.push_back(used_key(section, "flops_profiler", "where the operations and the time of one step go"));
  t.push_back(
      used_key(boolean, name + "enabled", "tells it of profile_step, by pass, unit and operation").standard(false));
  t.push_back(used_key(integer, name + "profile_step", "the attempted step that is profiled").standard(1).at_least(1));
  t.push_back(
      used_key(boolean, name + "detailed", "every unit of the model; false: top_modules of them").standard(true));
  t.push_back(used_key(integer, name + "top_modules", "without detailed: the units that take the most time")
                  .standard(1)
                  .at_least(1));
  t.push_back(used_key(string, name + "output_file", "where the profile goes; null: on the screen and into train.log")
                  .standard(nullptr)
                  .or_null());
  t.push_back(notice_key(integer, name + "module_depth", "how deep modules are told apart",
                         "a unit (a block of the model) is profiled as a whole, --trace shows its operations")
                  .unless({-1}));
  t.push_back(notice_key(number, name + "recompute_fwd_factor", "a guess at what is recomputed",
                         "recomputed operations are counted as they run")
                  .unless({0}));
}

void add_comms_logger(std::vector<Key>& t) {
  const std::string name = "comms_logger.";
  t.push_back(used_key(section, "comms_logger", "how long collectives take"));
  t.push_back(used_key(boolean, name + "enabled",
                       "times those of training steps on rank 0; the end of the run tells of them by kind and size")
                  .standard(false));
  t.push_back(used_key(boolean, name + "verbose", "a line for each call, too; the host waits for them after each step")
                  .standard(false));
  t.push_back(used_key(boolean, name + "prof_all", "all kinds; false: those of prof_ops").standard(true));
  t.push_back(used_key(strings, name + "prof_ops",
                       "without prof_all: what to log, by DeepSpeed's names; one means the kind that it contains, "
                       "all_gather_into_tensor all_gather")
                  .standard(Json::array())
                  .one_of({"all_reduce",
                           "all_reduce_coalesced",
                           "inference_all_reduce",
                           "reduce_scatter",
                           "reduce_scatter_tensor",
                           "reduce_scatter_fn",
                           "all_gather",
                           "all_gather_into_tensor",
                           "all_gather_coalesced",
                           "all_gather_object",
                           "all_to_all",
                           "all_to_all_single",
                           "broadcast",
                           "broadcast_object_list",
                           "reduce",
                           "gather",
                           "scatter",
                           "send",
                           "recv",
                           "isend",
                           "irecv",
                           "batch_isend_irecv",
                           "barrier",
                           "monitored_barrier"}));
  t.push_back(
      used_key(boolean, name + "debug", "tells calls apart by what they are for: activity, unit of the model and pass")
          .standard(false));
}

void add_silent_sections(std::vector<Key>& t) {
  t.push_back(notice_key(section, "aio", "asynchronous transfers to NVMe", "nothing is offloaded to NVMe"));
  for (const auto& [key, type] :
       {std::pair{"block_size", integer}, std::pair{"queue_depth", integer}, std::pair{"intra_op_parallelism", integer},
        std::pair{"single_submit", boolean}, std::pair{"overlap_events", boolean}, std::pair{"use_gds", boolean}}) {
    t.push_back(notice_key(type, std::string("aio.") + key, "of transfers to NVMe", ""));
  }
  t.push_back(alias_key("aio.thread_count", "aio.intra_op_parallelism"));

  t.push_back(notice_key(
      section, "checkpoint", "how DeepSpeed writes checkpoints",
      "checkpoints here are of another format: each rank writes its part, and any world size and stage reads them"));
  t.push_back(notice_key(choice, "checkpoint.tag_validation", "do all ranks use the same tag", "")
                  .one_of({"Ignore", "Warn", "Fail"})
                  .in_any_case());
  for (const char* key : {"load_universal", "use_node_local_storage", "checkpoint_serialization"}) {
    t.push_back(notice_key(boolean, std::string("checkpoint.") + key, "of DeepSpeed's format", ""));
  }
  t.push_back(notice_key(anything, "checkpoint.parallel_write", "of DeepSpeed's format", ""));
  t.push_back(notice_key(anything, "checkpoint.writer", "of DeepSpeed's format", ""));
  t.push_back(notice_key(anything, "compile", "torch.compile", "there is no PyTorch here; kernels are compiled already")
                  .unless({false, nullptr, Json::object()}));
}

void add_refused(std::vector<Key>& t) {
  const std::string data_parallel =
      "this program is data parallel (ZeRO) only: remove the section; for less memory raise zero_optimization.stage";
  const std::string data = "every sample is whole and samples come in shuffled order: remove the section";
  const std::string quantize = "weights are trained as they are, without compression: remove the section";
  const std::string place = "checkpoints go to the output directory only: remove the section";
  const std::vector<std::pair<const char*, std::string>> sections = {
      {"pipeline", data_parallel},
      {"tensor_parallel", data_parallel},
      {"expert_parallel", data_parallel},
      {"sequence_parallel", data_parallel},
      {"moe", "there are no experts here, every token takes the whole model: remove the section"},
      {"sparse_attention", "attention is dense here: remove the section"},
      {"elasticity",
       "give the batch keys themselves: remove the section; a run goes on with any number of ranks (--resume)"},
      {"autotuning", "give the values themselves: remove the section; zerotrain --dry-run shows what a run takes"},
      {"curriculum_learning",
       "every sample has the whole length, model.n_positions, from the first step on: remove the section"},
      {"data_efficiency", data},
      {"compression_training", quantize},
      {"quantize_training", quantize},
      {"weight_quantization", quantize},
      {"progressive_layer_drop",
       "every block takes part in every step: remove the section; for regularisation use model.resid_pdrop"},
      {"eigenvalue", "it times quantization, which is not done here: remove the section"},
      {"hybrid_engine", "this program trains, without generation in between: remove the section"},
      {"nebula", place},
      {"datastates", place},
      {"monitor_config",
       "DeepSpeed reads no such section: its parts csv_monitor, tensorboard and wandb stand at the top level"},
      {"comms_config", "DeepSpeed reads no such section: use comms_logger"},
      {"autotuning_config", "DeepSpeed reads no such section: remove it"},
  };
  for (const auto& [name, use] : sections) {
    t.push_back(refused_key(section, name, "a section of DeepSpeed's", use));
  }
}

// Of other kinds of parallelism, which one rank alone needs not; of DeepSpeed's inference.
void add_refused_keys(std::vector<Key>& t) {
  for (const char* name :
       {"tensor_parallel_size", "pipeline_parallel_size", "model_parallel_size", "sequence_parallel_size",
        "expert_parallel_size", "context_parallel_size", "autotp_size", "tp_size", "mp_size", "ep_size"}) {
    t.push_back(refused_key(integer, name, "ranks that share a layer, a sequence or the experts",
                            "this program is data parallel (ZeRO) only: set it to 1 or remove it")
                    .or_null()
                    .unless({0, 1, nullptr}));
  }
  for (const char* name : {"replace_with_kernel_inject", "kernel_inject", "enable_cuda_graph", "replace_method",
                           "injection_policy", "max_out_tokens", "triangular_masking", "quant", "moe_experts"}) {
    t.push_back(refused_key(anything, name, "of DeepSpeed's inference",
                            "a key of DeepSpeed's inference, and this trains: remove it; zerotrain generate takes "
                            "options on the command line")
                    .unless({nullptr, false}));
  }
}

}  // namespace

void add_other_sections(std::vector<Key>& table) {
  add_activation_checkpointing(table);
  add_switchable(table);
  add_monitors(table);
  add_flops_profiler(table);
  add_comms_logger(table);
  add_silent_sections(table);
  add_refused(table);
  add_refused_keys(table);
}

}  // namespace zt
