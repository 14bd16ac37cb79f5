// DeepSpeed's keys of the top level and of the sections for precision.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_batch(std::vector<Key>& t) {
  t.push_back(used_key(integer, "train_batch_size", "samples of an optimizer step over all ranks")
                  .or_auto()
                  .or_null()
                  .at_least(1)
                  .at_most(static_cast<double>(largest_batch)));
  t.push_back(used_key(integer, "train_micro_batch_size_per_gpu", "samples of a rank in one forward and backward pass")
                  .or_auto()
                  .or_null()
                  .at_least(1)
                  .at_most(static_cast<double>(largest_batch)));
  t.push_back(used_key(integer, "gradient_accumulation_steps", "passes of a rank in an optimizer step")
                  .or_auto()
                  .or_null()
                  .at_least(1)
                  .at_most(static_cast<double>(largest_batch)));
  t.push_back(notice_key(boolean, "managed_gradient_accumulation", "who counts the micro-batches",
                         "the trainer always counts its micro-batches itself")
                  .unless({true}));
}

void add_precision(std::vector<Key>& t) {
  t.push_back(used_key(section, "fp16", "training in fp16 with fp32 master weights and loss scaling"));
  t.push_back(used_key(boolean, "fp16.enabled", "auto: false").standard(false).or_auto());
  t.push_back(notice_key(boolean, "fp16.auto_cast", "casts the inputs", "inputs are token ids or cast to fp16 anyway")
                  .unless({false}));
  t.push_back(used_key(number, "fp16.loss_scale", "0: dynamic; otherwise fixed at this value")
                  .meaning("dynamic", "0, which is dynamic")
                  .standard(0.0)
                  .at_least(0)
                  .at_most(1e37));
  t.push_back(used_key(integer, "fp16.initial_scale_power", "a dynamic scale starts at 2 to this power")
                  .standard(32)
                  .at_least(0)
                  .at_most(126));
  t.push_back(used_key(integer, "fp16.loss_scale_window", "steps without overflow before the scale doubles")
                  .standard(1000)
                  .at_least(1));
  t.push_back(used_key(integer, "fp16.hysteresis", "overflows until the scale is halved").standard(2).at_least(1));
  t.push_back(used_key(boolean, "fp16.consecutive_hysteresis", "a step without overflow refills the hysteresis")
                  .standard(false));
  t.push_back(
      used_key(integer, "fp16.min_loss_scale", "an overflow at this scale ends the run").standard(1).at_least(1));
  t.push_back(used_key(choice, "fp16.on_overflow",
                       "a batch whose gradients overflow is skipped, or run again at the halved scale")
                  .standard("skip")
                  .one_of({"skip", "retry"}));
  t.push_back(notice_key(boolean, "fp16.fp16", "GPT-NeoX's own switch", "fp16.enabled decides"));
  t.push_back(alias_key("bfloat16", "bf16"));
  t.push_back(used_key(section, "bf16", "training in bf16 with fp32 master weights"));
  t.push_back(used_key(boolean, "bf16.enabled", "auto: true where the device is fast at it").standard(false).or_auto());
  t.push_back(notice_key(boolean, "bf16.immediate_grad_update", "when a gradient is added up",
                         "gradients are added up as soon as all ranks have made them")
                  .unless({false}));
  t.push_back(used_key(boolean, "bf16.check_grad_overflow",
                       "a step whose gradients or loss are not finite is skipped; false: it ends the run")
                  .standard(true));
}

// What people carry over from fp16, where it means something.
void add_scaling_of_bf16(std::vector<Key>& t) {
  for (const char* name : {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
                           "consecutive_hysteresis", "min_loss_scale", "auto_cast"}) {
    t.push_back(notice_key(anything, std::string("bf16.") + name, "of fp16's loss scaling",
                           "bf16 reaches as far as fp32, so no loss is scaled"));
  }
}

void add_rest(std::vector<Key>& t) {
  t.push_back(used_key(number, "gradient_clipping", "largest norm of all gradients together; 0: off; auto: 1.0")
                  .standard(0.0)
                  .or_auto()
                  .at_least(0));
  t.push_back(
      used_key(boolean, "prescale_gradients",
               "the mean of gradients is taken by dividing each micro-batch's before they are added up, not after")
          .standard(false));
  t.push_back(used_key(number, "gradient_predivide_factor",
                       "divides each micro-batch's gradients before they are added up; the sum is divided by the rest")
                  .standard(1.0)
                  .above(0)
                  .at_most(1e9));
  t.push_back(refused_key(string, "gradient_allreduce_op", "mean or sum",
                          "gradients are averaged here: set it to \"mean\" or remove it")
                  .unless({"mean"}));
  for (const char* name : {"fp32_allreduce", "allreduce_always_fp32"}) {
    t.push_back(old_form_key(name, "communication_data_type", "fp32"));
  }
  t.push_back(refused_key(boolean, "sparse_gradients", "gradients of embeddings as index lists",
                          "gradients are dense here: set it to false or remove it")
                  .unless({false}));
  t.push_back(notice_key(boolean, "disable_allgather", "an old switch", "how parameters travel follows from the stage")
                  .unless({false}));
  t.push_back(notice_key(boolean, "zero_allow_untested_optimizer", "lets ZeRO run with other optimizers",
                         "every optimizer here works at every stage"));
  t.push_back(notice_key(boolean, "zero_force_ds_cpu_optimizer", "which Adam with offload",
                         "there is one implementation of Adam here"));
  t.push_back(used_key(integer, "steps_per_print", "steps between progress lines").standard(10).at_least(1));
  t.push_back(
      used_key(boolean, "wall_clock_breakdown",
               "with each progress line: where the time of a step went, forward, backward, optimizer, collectives")
          .standard(false));
  t.push_back(used_key(boolean, "memory_breakdown", "with each progress line: the memory of a rank by category")
                  .standard(false));
  t.push_back(used_key(boolean, "dump_state", "prints the resolved config at the start").standard(false));
  t.push_back(notice_key(string, "log_level", "of DeepSpeed's logger", "use --quiet or --verbose").or_null());
  t.push_back(notice_key(boolean, "dataloader_drop_last", "the last batch of an epoch",
                         "every step takes exactly train_batch_size samples"));
  t.push_back(
      notice_key(integer, "vocabulary_size", "of DeepSpeed's check", "model.vocab_size is what counts").or_null());
  t.push_back(
      notice_key(boolean, "graph_harvesting", "CUDA graphs", "nothing of that kind exists on the CPU").unless({false}));
  t.push_back(notice_key(boolean, "use_data_before_expert_parallelism", "order of parallel groups",
                         "there is data parallelism only"));
  t.push_back(used_key(section, "timers", "DeepSpeed's timers"));
  t.push_back(used_key(section, "timers.throughput", "DeepSpeed's timers"));
  for (const char* name : {"enabled", "synchronized"}) {
    t.push_back(notice_key(boolean, std::string("timers.throughput.") + name, "measures throughput",
                           "throughput is always measured, see metrics.jsonl"));
  }
}

}  // namespace

void add_general_keys(std::vector<Key>& table) {
  add_batch(table);
  add_precision(table);
  add_scaling_of_bf16(table);
  add_precision_keys(table);
  add_rest(table);
}

}  // namespace zt
