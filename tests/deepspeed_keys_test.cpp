// Configs as they are found in the wild: what DeepSpeed's keys and forms of them become here. Every key of DeepSpeed
// has one answer: it acts, it is accepted with a line that says why it changes nothing, or it is refused with what to
// use.
#include <set>

#include "catch_compat.h"
#include "config/keys.h"
#include "config_support.h"

using namespace zt;
using namespace zt::testing;

namespace {

const std::vector<std::string> on_cpu = {"device.type=cpu"};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string notices_of(const std::string& text, int world_size = 1) {
  return joined(resolve_texts({tiny_gpt(), text}, on_cpu, world_size).notices);
}

struct Answer {
  std::string text;
  std::vector<std::string> words;
};

void check_accepted(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    INFO(answer.text);
    REQUIRE(refusal_of({tiny_gpt(), answer.text}, on_cpu) == "accepted");
    const std::string notices = notices_of(answer.text);
    INFO(notices);
    for (const std::string& words : answer.words) {
      INFO(words);
      CHECK(notices.find(words) != std::string::npos);
    }
  }
}

void check_refused(const std::vector<Answer>& answers) {
  for (const Answer& answer : answers) {
    const std::string refusal = refusal_of({tiny_gpt(), answer.text}, on_cpu);
    INFO(answer.text << "\n" << refusal);
    for (const std::string& words : answer.words) {
      INFO(words);
      CHECK(refusal.find(words) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("every key that DeepSpeed's documentation names stands in the table") {
  std::set<std::string> known;
  for (const Key& key : key_table()) known.insert(key.path);
  for (const char* path : {
           "train_batch_size",
           "train_micro_batch_size_per_gpu",
           "gradient_accumulation_steps",
           "managed_gradient_accumulation",
           "optimizer.type",
           "optimizer.params",
           "optimizer.legacy_fusion",
           "scheduler.type",
           "scheduler.params",
           "fp16.enabled",
           "fp16.auto_cast",
           "fp16.loss_scale",
           "fp16.initial_scale_power",
           "fp16.loss_scale_window",
           "fp16.hysteresis",
           "fp16.consecutive_hysteresis",
           "fp16.min_loss_scale",
           "fp16.fp16_master_weights_and_grads",
           "bf16.enabled",
           "bfloat16",
           "bf16.immediate_grad_update",
           "bf16.check_grad_overflow",
           "bf16.bf16_master_weights_and_grads",
           "bf16.bf16_optimizer_states",
           "amp.enabled",
           "amp.opt_level",
           "torch_autocast.enabled",
           "torch_autocast.dtype",
           "torch_autocast.lower_precision_safe_modules",
           "data_types.grad_accum_dtype",
           "data_types.param_dtype",
           "data_types.buffer_dtype",
           "communication_data_type",
           "seq_parallel_communication_data_type",
           "gradient_clipping",
           "prescale_gradients",
           "gradient_predivide_factor",
           "gradient_allreduce_op",
           "sparse_gradients",
           "disable_allgather",
           "zero_allow_untested_optimizer",
           "zero_force_ds_cpu_optimizer",
           "steps_per_print",
           "wall_clock_breakdown",
           "memory_breakdown",
           "dump_state",
           "log_level",
           "dataloader_drop_last",
           "vocabulary_size",
           "timers.throughput.enabled",
           "timers.throughput.synchronized",
           "graph_harvesting",
           "fp32_allreduce",
           "zero_optimization.stage",
           "zero_optimization.contiguous_gradients",
           "zero_optimization.reduce_scatter",
           "zero_optimization.use_multi_rank_bucket_allreduce",
           "zero_optimization.reduce_bucket_size",
           "zero_optimization.allgather_partitions",
           "zero_optimization.allgather_bucket_size",
           "zero_optimization.overlap_comm",
           "zero_optimization.load_from_fp32_weights",
           "zero_optimization.elastic_checkpoint",
           "zero_optimization.round_robin_gradients",
           "zero_optimization.ignore_unused_parameters",
           "zero_optimization.legacy_stage1",
           "zero_optimization.offload_param.device",
           "zero_optimization.offload_param.nvme_path",
           "zero_optimization.offload_param.buffer_count",
           "zero_optimization.offload_param.buffer_size",
           "zero_optimization.offload_param.max_in_cpu",
           "zero_optimization.offload_param.pin_memory",
           "zero_optimization.offload_optimizer.device",
           "zero_optimization.offload_optimizer.nvme_path",
           "zero_optimization.offload_optimizer.buffer_count",
           "zero_optimization.offload_optimizer.pin_memory",
           "zero_optimization.offload_optimizer.pipeline_read",
           "zero_optimization.offload_optimizer.pipeline_write",
           "zero_optimization.offload_optimizer.fast_init",
           "zero_optimization.offload_optimizer.ratio",
           "zero_optimization.offload_optimizer.super_offload",
           "zero_optimization.offload_optimizer.cpuadam_cores_perc",
           "zero_optimization.sub_group_size",
           "zero_optimization.stage3_prefetch_bucket_size",
           "zero_optimization.stage3_param_persistence_threshold",
           "zero_optimization.stage3_model_persistence_threshold",
           "zero_optimization.stage3_max_live_parameters",
           "zero_optimization.stage3_max_reuse_distance",
           "zero_optimization.stage3_gather_16bit_weights_on_model_save",
           "zero_optimization.stage3_gather_fp16_weights_on_model_save",
           "zero_optimization.stage3_module_granularity_threshold",
           "zero_optimization.stage3_use_all_reduce_for_fetch_params",
           "zero_optimization.stage3_allgather_sequential",
           "zero_optimization.zero_hpz_partition_size",
           "zero_optimization.zero_quantized_weights",
           "zero_optimization.zero_quantized_nontrainable_weights",
           "zero_optimization.zero_quantized_gradients",
           "zero_optimization.zeropp_loco_param",
           "zero_optimization.mics_shard_size",
           "zero_optimization.mics_hierarchical_params_gather",
           "zero_optimization.memory_efficient_linear",
           "zero_optimization.pipeline_loading_checkpoint",
           "zero_optimization.override_module_apply",
           "zero_optimization.leaf_module",
           "zero_optimization.log_trace_cache_warnings",
           "zero_optimization.enable_sanity_checks",
           "zero_optimization.save_muon_momentum_buffer_in_memory",
           "zero_optimization.zenflow",
           "zero_optimization.cpu_offload",
           "zero_optimization.cpu_offload_param",
           "zero_optimization.cpu_offload_params",
           "zero_optimization.cpu_offload_use_pin_memory",
           "zero_optimization.grad_hooks",
           "activation_checkpointing.partition_activations",
           "activation_checkpointing.cpu_checkpointing",
           "activation_checkpointing.contiguous_memory_optimization",
           "activation_checkpointing.number_checkpoints",
           "activation_checkpointing.synchronize_checkpoint_boundary",
           "activation_checkpointing.profile",
           "aio.block_size",
           "aio.queue_depth",
           "aio.intra_op_parallelism",
           "aio.thread_count",
           "aio.single_submit",
           "aio.overlap_events",
           "aio.use_gds",
           "flops_profiler.enabled",
           "flops_profiler.recompute_fwd_factor",
           "flops_profiler.profile_step",
           "flops_profiler.module_depth",
           "flops_profiler.top_modules",
           "flops_profiler.detailed",
           "flops_profiler.output_file",
           "comms_logger.enabled",
           "comms_logger.verbose",
           "comms_logger.prof_all",
           "comms_logger.debug",
           "comms_logger.prof_ops",
           "tensorboard.enabled",
           "tensorboard.output_path",
           "tensorboard.job_name",
           "csv_monitor.enabled",
           "csv_monitor.output_path",
           "csv_monitor.job_name",
           "wandb.enabled",
           "wandb.group",
           "wandb.team",
           "wandb.project",
           "comet.enabled",
           "checkpoint.tag_validation",
           "checkpoint.load_universal",
           "checkpoint.use_node_local_storage",
           "checkpoint.parallel_write",
           "checkpoint.checkpoint_serialization",
           "checkpoint.writer",
           "pipeline",
           "tensor_parallel",
           "expert_parallel",
           "sparse_attention",
           "elasticity",
           "autotuning",
           "curriculum_learning",
           "data_efficiency",
           "compression_training",
           "progressive_layer_drop",
           "eigenvalue",
           "quantize_training",
           "hybrid_engine",
           "nebula",
           "datastates",
           "weight_quantization",
           "compile",
           "use_data_before_expert_parallelism",
       }) {
    INFO(path);
    CHECK(known.contains(path));
  }
}

TEST_CASE("offload to the CPU changes nothing on the CPU, in its new and its old form") {
  check_accepted({
      {R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
           "offload_param": {"device": "cpu", "buffer_count": 5, "buffer_size": 1e8, "max_in_cpu": 1e9}}})",
       {"offload_optimizer.device: has no effect: on the CPU everything rests in the host's memory",
        "offload_optimizer.pin_memory: has no effect", "offload_param.device: has no effect",
        "offload_param.buffer_count: has no effect", "offload_param.max_in_cpu: has no effect"}},
      {R"({"zero_optimization": {"stage": 2, "cpu_offload": true, "cpu_offload_params": true,
           "cpu_offload_use_pin_memory": true}})",
       {"b.json:1: zero_optimization.cpu_offload: true is an old form of "
        "\"zero_optimization.offload_optimizer.device\": \"cpu\"",
        "cpu_offload_params: true is an old form of \"zero_optimization.offload_param.device\": \"cpu\"",
        "offload_optimizer.device: has no effect", "cpu_offload_use_pin_memory: has no effect"}},
      {R"({"zero_optimization": {"stage": 2, "cpu_offload": true, "offload_optimizer": null}})",
       {"offload_optimizer.device: has no effect"}},
  });
  CHECK(notices_of(R"({"zero_optimization": {"cpu_offload": false}})").find("offload") == std::string::npos);
  CHECK(notices_of(R"({"zero_optimization": {"offload_optimizer": {"device": "none"}}})").find("offload") ==
        std::string::npos);
  // --set takes the old form, too.
  const ResolvedConfig config = resolve_texts({tiny_gpt()}, {"zero_optimization.cpu_offload=true", "device.type=cpu"});
  CHECK(config.json["zero_optimization"]["offload_optimizer"]["device"] == "cpu");
  // Where a GPU is expected it would have to do something.
  const ConfigDirectory directory;
  ResolveOptions options = directory.options();
  options.expects_gpu = true;
  const std::string file = directory.write("a.json", tiny_gpt());
  const std::vector<std::string> offload = {"zero_optimization.offload_optimizer.device=cpu"};
  CHECK_THROWS_AS(resolve_config({file}, offload, 1, options), ConfigError);
  CHECK_NOTHROW(resolve_config({file}, {offload.front(), "device.type=cpu"}, 1, options));
}

TEST_CASE("old names and forms are understood, with the new one told") {
  check_accepted({
      {R"({"zero_optimization": true})", {"zero_optimization: true is an old form of \"stage\": 1"}},
      {R"({"zero_optimization": {"stage3_gather_fp16_weights_on_model_save": true, "max_reuse_distance": 0,
           "param_persistence_threshold": 5}})",
       {}},
      {R"({"bfloat16": {"enabled": true}})", {"bfloat16 is an old name of bf16"}},
      {R"({"fp32_allreduce": true, "bf16": {"enabled": true}})",
       {"fp32_allreduce: true is an old form of \"communication_data_type\": \"fp32\""}},
      {R"({"fp32_allreduce": false, "fp16": {"enabled": true}})", {}},
      {R"({"fp16": {"enabled": true, "auto_cast": true}})", {"fp16.auto_cast: has no effect"}},
      {R"({"fp16": {"enabled": true, "fp16": true}})", {"fp16.fp16: has no effect: fp16.enabled decides"}},
      {R"({"optimizer": {"type": "Adam", "params": {"adamw_mode": false}}})",
       {"adamw_mode is an old name of optimizer.params.adam_w_mode"}},
  });
  const ResolvedConfig config = resolve_texts({tiny_gpt(), R"({"fp32_allreduce": true, "bf16": {"enabled": true}})"});
  CHECK(config.settings.precision.communication_dtype == "fp32");
}

TEST_CASE("auto follows Hugging Face's rules") {
  check_accepted({
      {R"({"fp16": {"enabled": "auto"}, "gradient_clipping": "auto", "train_micro_batch_size_per_gpu": "auto",
           "gradient_accumulation_steps": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto",
           "betas": "auto", "eps": "auto", "weight_decay": "auto"}}, "scheduler": {"type": "WarmupDecayLR", "params": {
           "warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto"}},
           "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
           "stage3_param_persistence_threshold": "auto"}})",
       {"gradient_clipping: \"auto\" is 1.0", "optimizer.params.lr: \"auto\" is 5e-05",
        "optimizer.params.betas: \"auto\" is [0.9,0.999]", "optimizer.params.eps: \"auto\" is 1e-08",
        "optimizer.params.weight_decay: \"auto\" is 0.0", "warmup_min_lr: \"auto\" is 0.0",
        "warmup_max_lr: \"auto\" is 5e-05", "total_num_steps: \"auto\" is 4",
        "stage3_prefetch_bucket_size: \"auto\" is 3686, 0.9 x width squared",
        "stage3_param_persistence_threshold: \"auto\" is 640, 10 x width"}},
      // Sections that DeepSpeed reads strictly drop it, so its own default stands; here these change nothing at all.
      {R"({"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": "auto",
           "overlap_comm": "auto", "sub_group_size": "auto", "allgather_bucket_size": "auto",
           "zero_quantized_weights": "auto"}})",
       {"stage3_gather_16bit_weights_on_model_save: has no effect", "overlap_comm: has no effect",
        "sub_group_size: has no effect", "zero_quantized_weights: \"auto\" counts as absent"}},
      {R"({"train_micro_batch_size_per_gpu": null, "gradient_accumulation_steps": null})", {}},
  });
  check_refused({
      {R"({"steps_per_print": "auto"})", {"steps_per_print: found \"auto\""}},
      {R"({"zero_optimization": {"stage3_max_live_parameters": "auto"}})", {"found \"auto\"; allowed: an integer"}},
      {R"({"wall_clock_breakdown": "auto"})", {"found \"auto\"; allowed: true or false"}},
  });
}

TEST_CASE("what changes nothing here is accepted with why") {
  check_accepted({
      {R"({"bf16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2}})",
       {"bf16.loss_scale: has no effect: bf16 reaches as far as fp32", "bf16.hysteresis: has no effect"}},
      {R"({"zero_allow_untested_optimizer": true, "zero_force_ds_cpu_optimizer": false})",
       {"zero_allow_untested_optimizer: has no effect", "zero_force_ds_cpu_optimizer: has no effect"}},
      {R"({"aio": {"block_size": 1048576, "queue_depth": 16, "single_submit": false, "overlap_events": true,
           "thread_count": 2}})",
       {"aio: has no effect", "aio.thread_count is an old name"}},
      {R"({"wandb": {"enabled": true, "group": "g", "team": "t", "project": "p"}})",
       {"wandb.enabled: has no effect: nothing is sent to a server"}},
      {R"({"comet": {"enabled": true, "workspace": "w", "samples_log_interval": 10}})", {"comet.enabled"}},
      {R"({"flops_profiler": {"enabled": true, "profile_step": 1, "module_depth": -1, "top_modules": 3,
           "detailed": true, "output_file": null}})",
       {}},
      {R"({"flops_profiler": {"enabled": true, "module_depth": 2, "recompute_fwd_factor": 0.5}})",
       {"flops_profiler.module_depth: has no effect", "flops_profiler.recompute_fwd_factor: has no effect"}},
      {R"({"comms_logger": {"enabled": true, "prof_all": true, "prof_ops": ["all_reduce"]}})",
       {"comms_logger.prof_ops: has no effect: comms_logger.prof_all is true"}},
      {R"({"comms_logger": {"enabled": true, "prof_all": false}})",
       {"comms_logger.enabled: has no effect: prof_all is false and prof_ops names no collective"}},
      {R"({"activation_checkpointing": {"partition_activations": true, "number_checkpoints": 4, "profile": false}})",
       {"partition_activations: has no effect", "number_checkpoints: has no effect"}},
      {R"({"activation_checkpointing": {"number_checkpoints": false}})", {}},
      {R"({"checkpoint": {"tag_validation": "warn", "load_universal": true, "writer": {"type": "fast"}}})",
       {"checkpoint: has no effect"}},
      {R"({"compile": {"disable": false, "backend": "inductor"}})", {"compile: has no effect"}},
      {R"({"optimizer": {"type": "AdamW", "params": {"torch_adam": true, "fused": true}}})",
       {"torch_adam: has no effect", "fused: has no effect"}},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": 5}}})",
       {"last_batch_iteration: has no effect"}},
      {R"({"_comment": "why", "zero_optimization": {"_note": 1}, "steps_per_print": 20000000000000000})", {}},
      {R"({"zero_optimization": {"stage": 3, "sub_group_size": 1e14, "stage3_max_reuse_distance": 1e9}})",
       {"sub_group_size: has no effect"}},
  });
}

TEST_CASE("what is switched off, or for one rank, passes in silence") {
  for (const char* text : {
           R"({"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": false},
               "different_groups": {"wq1": {"params": {"start_bits": 8}}}}, "layer_reduction": {"enabled": false}}})",
           R"({"data_efficiency": {"enabled": true, "data_sampling": {"enabled": false},
               "data_routing": {"enabled": false}}})",
           R"({"curriculum_learning": {"enabled": false, "curriculum_type": "seqlen"}, "eigenvalue": {"enabled": false},
               "progressive_layer_drop": {"enabled": false, "theta": 0.5}, "hybrid_engine": {"enabled": false},
               "autotuning": {"enabled": false, "fast": true}, "elasticity": {"enabled": "auto"}, "nebula": {},
               "sparse_attention": {}, "pipeline": null, "quantize_training": false})",
           R"({"tensor_parallel": {"autotp_size": 1}, "sequence_parallel_size": 1, "pipeline_parallel_size": 0})",
           R"({"comms_logger": {"enabled": true, "verbose": false, "prof_all": true, "debug": false, "prof_ops": []}})",
           R"({"comms_logger": {"enabled": true, "verbose": true, "prof_all": false, "debug": true,
               "prof_ops": ["all_gather_into_tensor", "reduce_scatter_tensor", "barrier"]}})",
           R"({"comms_logger": {"enabled": false, "prof_all": true, "prof_ops": ["all_reduce"]}})",
           R"({"wandb": {"enabled": false, "project": "p"}, "monitor_config": {"enabled": false}, "compile": {}})",
       }) {
    INFO(text);
    REQUIRE(refusal_of({tiny_gpt(), text}, on_cpu) == "accepted");
    CHECK(notices_of(text) == notices_of("{}"));
  }
}

TEST_CASE("what is promised and not done here is refused with what to use") {
  check_refused({
      {R"({"zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "/x", "buffer_count": 4}}})",
       {"one mistake", "found \"nvme\"", "set it to \"none\""}},
      {R"({"zero_optimization": {"zenflow": {"topk_ratio": 0.1, "update_interval": 4}}})", {"leads to other weights"}},
      {R"({"optimizer": {"type": "ZeroOneAdam", "params": {"lr": 1e-3, "var_freeze_step": 9, "cuda_aware": false,
           "comm_backend_name": "nccl", "local_step_scaler": 32678}}})",
       {"one mistake", "found \"ZeroOneAdam\"", "use \"AdamW\""}},
      {R"({"optimizer": {"type": "OnebitAdam"}})", {"1-bit optimizers do not work with ZeRO"}},
      {R"({"optimizer": {"type": "Adam", "params": {"lr": 1e-3, "freeze_step": 100000}}})",
       {"one mistake", "freeze_step: found 100000; a key of DeepSpeed's 1-bit optimizers"}},
      {R"({"optimizer": {"type": "Muon", "params": {"per_head_muon": true}}})", {"made orthogonal as a whole"}},
      {R"({"optimizer": {"type": "MuAdamW"}})", {"no widths of muP"}},
      {R"({"optimizer": {"type": "DeepSpeedCPUAdam"}})", {"there is one implementation of Adam here"}},
      {R"({"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}})", {"gradient_clipping"}},
      {R"({"optimizer": {"type": "AdamW", "params": {"maximize": true}}})", {"the loss is minimized"}},
      {R"({"scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 9, "eta_min": 1e-5}}})",
       {"one mistake", "use WarmupCosineLR for a cosine"}},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto", "total_num_steps": "auto"}}})",
       {"a key of scheduler.type WarmupDecayLR, WarmupCosineLR; scheduler.type is WarmupLR here: remove it"}},
      {R"({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": "auto"}}})",
       {"total_num_steps: missing; allowed: an integer from 1 or \"auto\""}},
      {R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": -1, "warmup_max_lr": -1}}})",
       {"2 mistakes", "total_num_steps: found -1", "warmup_max_lr: found -1"}},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}})", {"found 0; allowed: an integer"}},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_ratio": 0.1}}})", {"use warmup_num_steps"}},
      {R"({"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, "warmup_num_steps": 2,
           "warmup_min_lr": 0, "warmup_max_lr": 1e-4}}})",
       {"2 mistakes", "use warmup_min_ratio", "takes its highest rate from optimizer.params.lr"}},
      {R"({"lr_scheduler": {"type": "WarmupCosineLR"}})", {"did you mean scheduler?"}},
      {R"({"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}}}})",
       {"compression_training: weights are trained as they are", "remove the section"}},
      {R"({"curriculum_learning": {"enabled": true, "curriculum_type": "seqlen"}})",
       {"every sample has the whole length, model.n_positions"}},
      {R"({"curriculum_learning": {"enabled": true, "schedule_config": {}}})", {"every sample has the whole length"}},
      {R"({"data_efficiency": {"enabled": true, "data_routing": {"enabled": true, "random_ltd": {"enabled": true}}}})",
       {"data_efficiency: every sample is whole"}},
      {R"({"elasticity": {"enabled": true, "max_train_batch_size": 2000}})", {"give the batch keys themselves"}},
      {R"({"autotuning": {"enabled": true, "fast": true}})", {"zerotrain --dry-run"}},
      {R"({"hybrid_engine": {"enabled": true, "inference_tp_size": 1}})", {"hybrid_engine"}},
      {R"({"sparse_attention": {"mode": "fixed", "block": 16}})", {"attention is dense here"}},
      {R"({"progressive_layer_drop": {"enabled": true, "theta": 0.5}})", {"every block takes part"}},
      {R"({"eigenvalue": {"enabled": true}})", {"eigenvalue"}},
      {R"({"quantize_training": {"enabled": true}})", {"without compression"}},
      {R"({"pipeline": {"stages": 4}})", {"data parallel (ZeRO) only"}},
      {R"({"tensor_parallel": {"autotp_size": 8}})", {"data parallel (ZeRO) only"}},
      {R"({"sequence_parallel_size": 4})", {"data parallel (ZeRO) only: set it to 1"}},
      {R"({"moe": {"enabled": true}})", {"no experts"}},
      {R"({"monitor_config": {"enabled": true, "csv_monitor": {"enabled": true}}})", {"stand at the top level"}},
      {R"({"comms_config": {"verbose": false}})", {"use comms_logger"}},
      {R"({"comms_logger": {"enabled": true, "prof_all": false, "prof_ops": ["all_gahter"]}})",
       {"comms_logger.prof_ops: found [\"all_gahter\"]", "did you mean \"all_gather\"?"}},
      {R"({"comms_logger": {"enabled": 1, "prof_ops": "all_reduce", "prof_op": []}})",
       {"3 mistakes", "comms_logger.enabled: found 1; allowed: true or false",
        "comms_logger.prof_ops: found \"all_reduce\"", "did you mean comms_logger.prof_ops?"}},
      {R"({"replace_with_kernel_inject": true, "mp_size": 2})", {"2 mistakes", "DeepSpeed's inference"}},
      {R"({"fp16": {"enabled": true, "opt_level": "O2"}})", {"fp16.opt_level", "it belongs to amp.opt_level"}},
      {R"({"zero_optimization": {"stage": [0, 1, 2, 3]}})", {"found [0,1,2,3]; allowed: an integer from 0 to 3"}},
      {R"({"zero_optimization": {"zero_allow_untested_optimizer": true}})",
       {"it stands at the top level: zero_allow_untested_optimizer"}},
      {R"({"train-iters": 5})", {"train-iters: unknown key; did you mean training.max_steps?"}},
      {R"({"comment": "x", "//": "y"})",
       {"2 mistakes",
        "comment: unknown key; a remark stands in a comment, // ..., or under a name that begins with _"}},
      {R"({"cuda_visible_devices": 0})", {"unknown key; DeepSpeed does not know it either: remove it"}},
  });
}

TEST_CASE("files that are not JSON are told what to mend") {
  check_refused({
      {"\n// a part\n\"optimizer\": {},\n\"scheduler\": {}\n",
       {"b.json:3:1: a fragment without its outer braces: put { before this and } at the end of the file"}},
      {R"({"fp16": {"enabled": True, "initial_scale_power": 12}})", {"write true"}},
      {R"({"scheduler": {"type": "WarmupLR"} "tensorboard": {}})", {"a comma is missing before this"}},
      {R"({"tensorboard": {"output_path": /home/me/logs}})", {"text must stand in double quotes"}},
      {"{\"optimizer\": {\"type\": \"Adam\",\r\n \"fp16\": {\"enabled\": true}\r\n}\r\n",
       {"the file ends before the { of line 1 is closed with }"}},
      {R"({"train_batch_size": CONFIG_BATCH_SIZE})", {"a placeholder that a script was to fill in: write the value"}},
      {R"({"steps_per_print": Infinity})", {"NaN and Infinity are not allowed"}},
  });
  // Comments, commas that trail, tabs and Windows' ends of lines are none of that.
  check_accepted(
      {{"{\r\n\t\"fp16\" : { \"enabled\": false, }, // { \"stage\": 2 },\r\n\t# x\r\n"
        "\"zero_optimization\": true, /* y */\r\n}\r\n\r\n  ",
        {}}});
}
