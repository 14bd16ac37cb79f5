// Keys that choose number formats: 16-bit masters, the levels of NVIDIA's apex, autocast, and what travels and is added
// up in which format. The presets that they lead to are in core/precision.cpp.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_masters(std::vector<Key>& t) {
  t.push_back(used_key(boolean, "fp16.fp16_master_weights_and_grads",
                       "no fp32 masters: the optimizer updates fp16 weights, its averages are fp32")
                  .standard(false));
  t.push_back(used_key(boolean, "bf16.bf16_master_weights_and_grads",
                       "no fp32 masters: the optimizer updates bf16 weights, its averages are fp32")
                  .standard(false));
  t.push_back(used_key(boolean, "bf16.bf16_optimizer_states",
                       "the optimizer's averages in bf16, too; needs bf16_master_weights_and_grads")
                  .standard(false));
}

void add_amp(std::vector<Key>& t) {
  t.push_back(used_key(section, "amp", "mixed precision by the levels of NVIDIA's apex"));
  t.push_back(used_key(boolean, "amp.enabled", "auto: false").standard(false).or_auto());
  t.push_back(used_key(choice, "amp.opt_level",
                       "O0: fp32; O1: fp32 but for products; O2: fp16 but for norms, fp32 masters; O3: all fp16")
                  .standard("O1")
                  .or_auto()
                  .one_of({"O0", "O1", "O2", "O3"}));
  t.push_back(used_key(boolean, "amp.keep_batchnorm_fp32", "norms in fp32; null: by the level (O2: true, O3: false)")
                  .standard(nullptr)
                  .or_null());
  t.push_back(used_key(boolean, "amp.master_weights", "fp32 masters; null: by the level (O2: true, O3: false)")
                  .standard(nullptr)
                  .or_null());
  t.push_back(used_key(number, "amp.loss_scale", "fixed at this value; null: by the level (O1, O2: dynamic, O3: 1)")
                  .standard(nullptr)
                  .one_of({"dynamic"})
                  .or_null()
                  .above(0)
                  .at_most(1e37));
  t.push_back(used_key(number, "amp.min_loss_scale", "an overflow at this scale ends the run; null: no such bound")
                  .standard(nullptr)
                  .or_null()
                  .above(0)
                  .at_most(1e37));
  t.push_back(used_key(number, "amp.max_loss_scale", "a dynamic scale does not grow past it")
                  .standard(16777216.0)
                  .above(0)
                  .at_most(1e37));
  t.push_back(notice_key(integer, "amp.num_losses", "losses that are scaled apart", "there is one loss").unless({1}));
  t.push_back(notice_key(integer, "amp.verbosity", "of apex's messages", "use --quiet or --verbose"));
  t.push_back(notice_key(string, "amp.cast_model_outputs", "format of the outputs", "the loss is fp32 at every level")
                  .or_null()
                  .unless({nullptr}));
  t.push_back(refused_key(anything, "amp.cast_model_type", "format of the parameters",
                          "opt_level decides it: O0 is fp32, O2 and O3 are fp16; remove the key")
                  .or_null()
                  .unless({nullptr}));
  t.push_back(refused_key(anything, "amp.patch_torch_functions", "casts by operation",
                          "opt_level decides it: O1 casts by operation; remove the key")
                  .or_null()
                  .unless({nullptr}));
}

void add_autocast(std::vector<Key>& t) {
  t.push_back(used_key(section, "torch_autocast", "fp32 but for products, as PyTorch's autocast"));
  t.push_back(used_key(boolean, "torch_autocast.enabled", "auto: false").standard(false).or_auto());
  t.push_back(
      used_key(choice, "torch_autocast.dtype", "of the products; float16 scales the loss as PyTorch's GradScaler does")
          .standard("bfloat16")
          .one_of({"bfloat16", "float16", "torch.bfloat16", "torch.float16"}));
  t.push_back(refused_key(strings, "torch_autocast.lower_precision_safe_modules", "PyTorch modules that cast",
                          "all linear layers and attention do here: remove the key")
                  .or_null()
                  .unless({nullptr}));
}

void add_formats(std::vector<Key>& t) {
  t.push_back(used_key(section, "data_types", "number formats"));
  t.push_back(used_key(choice, "data_types.grad_accum_dtype",
                       "sum over micro-batches; null: fp32 where there are several, else the training format")
                  .standard(nullptr)
                  .or_null()
                  .one_of({"fp32", "bf16", "fp16"}));
  for (const char* name : {"param_dtype", "buffer_dtype"}) {
    t.push_back(notice_key(string, std::string("data_types.") + name, "format of parameters or buffers",
                           "the sections fp16, bf16 and amp decide the formats")
                    .or_null()
                    .unless({nullptr}));
  }
  t.push_back(used_key(choice, "communication_data_type",
                       "gradients are made and sent between ranks in it; null: as the precision has them")
                  .standard(nullptr)
                  .or_null()
                  .one_of({"fp32", "bf16", "fp16"}));
  t.push_back(notice_key(string, "seq_parallel_communication_data_type", "of sequence parallelism",
                         "sequences are not split over ranks here")
                  .or_null());
}

}  // namespace

void add_precision_keys(std::vector<Key>& table) {
  add_masters(table);
  add_amp(table);
  add_autocast(table);
  add_formats(table);
}

}  // namespace zt
