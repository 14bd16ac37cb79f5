// DeepSpeed's section zero_optimization.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

const std::string zero = "zero_optimization.";

void add_notice(std::vector<Key>& t, KeyType type, const char* name, const char* help, const char* why) {
  t.push_back(notice_key(type, zero + name, help, why));
}

void add_buckets(std::vector<Key>& t) {
  const char* whole = "units (blocks, layers) are reduced and gathered whole";
  add_notice(t, boolean, "contiguous_gradients", "gradients in one buffer", "gradients always lie in flat buffers");
  add_notice(t, boolean, "reduce_scatter", "sends sums to their owner only", "sums always go to their owner only");
  t.back().unless({true});
  add_notice(t, boolean, "use_multi_rank_bucket_allreduce", "all-reduce in place of reduce-scatter",
             "sums always go to their owner only");
  add_notice(t, integer, "reduce_bucket_size", "elements reduced at once", whole);
  t.back().or_auto().at_least(0);
  add_notice(t, boolean, "allgather_partitions", "all-gather in place of broadcasts",
             "parameters are always all-gathered");
  t.back().unless({true});
  add_notice(t, integer, "allgather_bucket_size", "elements gathered at once", whole);
  t.back().at_least(0);
  add_notice(t, boolean, "overlap_comm", "communication during computation", "what runs ahead follows from the stage");
  t.back().or_null().unless({nullptr});
  add_notice(t, boolean, "load_from_fp32_weights", "on resume", "masters are always kept in fp32");
  t.back().unless({true});
  add_notice(t, boolean, "elastic_checkpoint", "checkpoints for other world sizes",
             "every checkpoint can be read at any world size and stage");
  t.back().unless({false});
  add_notice(t, boolean, "round_robin_gradients", "spreads copies over ranks", "slices are equal on all ranks");
  t.back().unless({false});
  add_notice(t, boolean, "ignore_unused_parameters", "parameters without a gradient",
             "every parameter gets a gradient");
  t.back().unless({true});
}

void add_stage3(std::vector<Key>& t) {
  const auto size = [&](const char* name, const char* help) -> Key& {
    t.push_back(used_key(integer, zero + name, help).standard(0).at_least(0));
    return t.back();
  };
  size("stage3_max_live_parameters",
       "elements gathered at a time at most (at least two units are held); 0: no limit set");
  size("stage3_prefetch_bucket_size", "elements to gather ahead; 0: the next unit; auto: 0.9 x width squared")
      .or_auto();
  size("stage3_param_persistence_threshold", "segments up to so many elements stay whole; auto: 10 x width").or_auto();
  add_notice(t, integer, "stage3_model_persistence_threshold", "elements that stay whole at most",
             "stage3_param_persistence_threshold alone decides what stays whole");
  t.back().at_least(0);
  add_notice(t, integer, "stage3_max_reuse_distance", "keeps what is soon used again",
             "a unit is kept until its buffer is needed for another");
  t.back().at_least(0);
  add_notice(t, integer, "sub_group_size", "elements updated at a time", "it matters with offload only");
  t.back().at_least(0);
  add_notice(t, boolean, "stage3_gather_16bit_weights_on_model_save", "whole weights in saved models",
             "zerotrain export writes weights of any checkpoint in the format asked for");
  t.back().unless({false});
  add_notice(t, integer, "stage3_module_granularity_threshold", "fetches small modules together",
             "units are blocks and layers");
  t.back().unless({0});
  add_notice(t, boolean, "stage3_use_all_reduce_for_fetch_params", "another way to gather",
             "parameters are always all-gathered");
  t.back().unless({false});
  add_notice(t, boolean, "stage3_allgather_sequential", "gathers one after another",
             "units are gathered in their order");
  t.back().unless({false});
  for (const char* name : {"max_live_parameters", "prefetch_bucket_size", "param_persistence_threshold",
                           "model_persistence_threshold", "max_reuse_distance", "gather_16bit_weights_on_model_save",
                           "module_granularity_threshold", "use_all_reduce_for_fetch_params", "allgather_sequential"}) {
    t.push_back(alias_key(zero + name, zero + "stage3_" + name));
  }
  for (const char* name : {"stage3_gather_fp16_weights_on_model_save", "gather_fp16_weights_on_model_save"}) {
    t.push_back(alias_key(zero + name, zero + "stage3_gather_16bit_weights_on_model_save"));
  }
}

// On the CPU everything rests in the host's memory; what a GPU would have to give away is refused (check_offload).
void add_offload(std::vector<Key>& t) {
  const std::string use =
      "this version keeps everything in memory: set it to \"none\" or remove the section (more ranks or a higher stage "
      "lower the memory of each)";
  const char* without = "nothing is moved between memories";
  for (const auto* part : {"offload_param", "offload_optimizer"}) {
    const std::string name = part;
    t.push_back(used_key(section, zero + name, "where parameters or optimizer states rest"));
    t.push_back(used_key(choice, zero + name + ".device",
                         "cpu: the host's memory, where everything rests anyway if device.type is cpu; on a GPU none")
                    .standard("none")
                    .one_of({"none", "cpu"})
                    .refusing("nvme", use));
    add_notice(t, string, (name + ".nvme_path").c_str(), "directory on NVMe", without);
    t.back().or_null();
    for (const char* size : {"buffer_count", "buffer_size", "max_in_cpu"}) {
      add_notice(t, integer, (name + "." + size).c_str(), "of transfers", without);
      t.back().at_least(0);
    }
    for (const char* flag : {"pin_memory", "pipeline_read", "pipeline_write", "fast_init"}) {
      add_notice(t, boolean, (name + "." + flag).c_str(), "of transfers", without);
      t.back().unless({false});
    }
  }
  for (const char* name : {"super_offload", "pipeline"}) {
    add_notice(t, boolean, (std::string("offload_optimizer.") + name).c_str(), "of transfers", without);
    t.back().unless({false});
  }
  for (const char* name : {"ratio", "cpuadam_cores_perc"}) {
    add_notice(t, number, (std::string("offload_optimizer.") + name).c_str(), "share on the CPU", without);
    t.back().at_least(0).at_most(1);
  }
  t.push_back(old_form_key(zero + "cpu_offload", zero + "offload_optimizer.device", "cpu"));
  for (const char* name : {"cpu_offload_params", "cpu_offload_param"}) {
    t.push_back(old_form_key(zero + name, zero + "offload_param.device", "cpu"));
  }
  add_notice(t, boolean, "cpu_offload_use_pin_memory", "page-locked buffers", without);
  t.back().unless({false});
}

void add_zeropp(std::vector<Key>& t) {
  const auto refuse = [&](KeyType type, const char* name, const char* help, const std::string& use,
                          std::vector<Json> harmless) {
    t.push_back(refused_key(type, zero + name, help, use).or_null().unless(std::move(harmless)));
  };
  const std::string hpz = "secondary shards (ZeRO++ hpZ) are not in this version: set it to 1 or remove it";
  const std::string quantized = "quantized communication (ZeRO++) is not in this version: set it to false or remove it";
  const std::string mics = "shard groups (MiCS) are not in this version, all ranks share one: remove it, use stage 3";
  refuse(integer, "zero_hpz_partition_size", "ZeRO++: secondary shards", hpz, {1, nullptr});
  refuse(boolean, "zero_quantized_weights", "ZeRO++: 8-bit gathers", quantized, {false, nullptr});
  refuse(boolean, "zero_quantized_nontrainable_weights", "ZeRO++: 8-bit gathers", quantized, {false, nullptr});
  refuse(boolean, "zero_quantized_gradients", "ZeRO++: 4-bit reductions", quantized, {false, nullptr});
  refuse(section, "zeropp_loco_param", "ZeRO++: error feedback",
         "quantized communication (ZeRO++) is not in this version: remove it", {nullptr});
  refuse(integer, "mics_shard_size", "MiCS: ranks that share a model", mics, {-1, nullptr});
  refuse(boolean, "mics_hierarchical_params_gather", "MiCS: gathers in two steps", mics, {false, nullptr});
}

void add_others(std::vector<Key>& t) {
  const char* torch = "it concerns modules of PyTorch";
  t.push_back(refused_key(boolean, zero + "legacy_stage1", "an old stage 1", "there is one stage 1: remove it")
                  .unless({false}));
  for (const char* name : {"memory_efficient_linear", "override_module_apply", "log_trace_cache_warnings",
                           "enable_sanity_checks", "stage3_memory_efficient_linear"}) {
    add_notice(t, boolean, name, "of DeepSpeed's hooks", torch);
  }
  add_notice(t, boolean, "grad_hooks", "of DeepSpeed's hooks", torch);
  add_notice(t, anything, "leaf_module", "modules fetched whole", torch);
  add_notice(t, boolean, "pipeline_loading_checkpoint", "ranks load in turn",
             "each rank reads what it holds through a small buffer");
  t.back().unless({false});
  add_notice(t, boolean, "save_muon_momentum_buffer_in_memory", "of Muon", "momentum always rests in memory");
  t.back().unless({false});
  t.push_back(refused_key(section, zero + "zenflow", "asynchronous offload",
                          "an update that goes on during the next steps (ZenFlow) leads to other weights: remove the "
                          "section")
                  .or_null());
}

}  // namespace

void add_zero_keys(std::vector<Key>& table) {
  table.push_back(used_key(section, "zero_optimization", "what is sharded over the ranks"));
  table.push_back(used_key(integer, zero + "stage",
                           "shards 1: optimizer states; 2: and gradients; 3: and parameters; auto: the cheapest that "
                           "fits the memory (docs/scaling.md)")
                      .standard(0)
                      .or_auto()
                      .at_least(0)
                      .at_most(3));
  add_stage3(table);
  add_buckets(table);
  add_offload(table);
  add_zeropp(table);
  add_others(table);
}

}  // namespace zt
