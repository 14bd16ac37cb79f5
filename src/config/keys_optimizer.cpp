// DeepSpeed's sections optimizer and scheduler.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_optimizer(std::vector<Key>& t) {
  const std::vector<std::string> adam = {"Adam", "AdamW"};
  const std::vector<std::string> sgd = {"SGD"};
  const std::string one_bit = "1-bit optimizers do not work with ZeRO (nor do they in DeepSpeed): use \"AdamW\"";
  t.push_back(used_key(section, "optimizer", "without it: AdamW with lr 3e-4"));
  t.push_back(used_key(choice, "optimizer.type", "upper or lower case")
                  .standard("AdamW")
                  .one_of({"Adam", "AdamW", "SGD"})
                  .in_any_case()
                  .refusing("OneBitAdam", one_bit)
                  .refusing("ZeroOneAdam", one_bit)
                  .refusing("OneBitLamb", one_bit)
                  .others("this version has Adam, AdamW and SGD: use \"AdamW\""));
  t.push_back(notice_key(boolean, "optimizer.legacy_fusion", "of fused LAMB", "there is one implementation of each")
                  .unless({false}));
  t.push_back(used_key(section, "optimizer.params", "depend on the type"));
  t.push_back(used_key(number, "optimizer.params.lr", "learning rate; 1e-3 if the section lacks it; auto: 5e-5")
                  .or_auto()
                  .at_least(0));
  t.push_back(used_key(numbers, "optimizer.params.betas", "decay of the running averages; auto: the default")
                  .standard({0.9, 0.999})
                  .or_auto()
                  .length(2, 2)
                  .at_least(0)
                  .below(1)
                  .only_for(adam));
  t.push_back(used_key(number, "optimizer.params.eps", "added to the root of the second average; auto: the default")
                  .standard(1e-8)
                  .or_auto()
                  .above(0)
                  .only_for(adam));
  t.push_back(used_key(number, "optimizer.params.weight_decay", "decoupled, or L2 (SGD; Adam without adam_w_mode)")
                  .standard(0.0)
                  .or_auto()
                  .at_least(0));
  t.push_back(used_key(boolean, "optimizer.params.adam_w_mode", "true: decoupled weight decay, even for type Adam")
                  .standard(true)
                  .only_for(adam));
  t.push_back(refused_key(boolean, "optimizer.params.bias_correction", "of Adam's averages",
                          "Adam's averages are always corrected here: set it to true or remove it")
                  .unless({true})
                  .only_for(adam));
  t.push_back(refused_key(boolean, "optimizer.params.amsgrad", "a variant of Adam",
                          "the AMSGrad variant is not in this version: set it to false or remove it")
                  .unless({false})
                  .only_for(adam));
  t.push_back(notice_key(boolean, "optimizer.params.torch_adam", "which of DeepSpeed's implementations",
                         "there is one implementation of Adam here")
                  .unless({false})
                  .only_for(adam));
  t.push_back(refused_key(boolean, "optimizer.params.fp32_optimizer_states", "format of the averages",
                          "the averages are always kept in fp32 here: set it to true or remove it")
                  .unless({true})
                  .only_for(adam));
  t.push_back(refused_key(number, "optimizer.params.max_grad_norm", "not a parameter of the optimizer",
                          "use the top-level key gradient_clipping"));
  t.push_back(used_key(number, "optimizer.params.momentum", "0: plain gradient descent")
                  .standard(0.0)
                  .at_least(0)
                  .below(1)
                  .only_for(sgd));
  t.push_back(used_key(number, "optimizer.params.dampening", "of the gradient that enters the momentum")
                  .standard(0.0)
                  .at_least(0)
                  .at_most(1)
                  .only_for(sgd));
  t.push_back(used_key(boolean, "optimizer.params.nesterov", "looks ahead; needs momentum and no dampening")
                  .standard(false)
                  .only_for(sgd));
}

void add_scheduler(std::vector<Key>& t) {
  const std::string have = "this version has WarmupLR, WarmupDecayLR and WarmupCosineLR: use ";
  const std::vector<std::string> linear = {"WarmupLR", "WarmupDecayLR"};
  const std::vector<std::string> cosine = {"WarmupCosineLR"};
  t.push_back(used_key(section, "scheduler", "learning-rate schedule over applied steps; without it: constant"));
  t.push_back(used_key(choice, "scheduler.type", "needed in the section")
                  .one_of({"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"})
                  .refusing("OneCycle", have + "WarmupDecayLR for a rise and a fall")
                  .refusing("LRRangeTest", have + "WarmupLR with \"warmup_type\": \"linear\" for a steady rise")
                  .others(have + "WarmupCosineLR for a cosine, WarmupDecayLR for a straight fall"));
  t.push_back(used_key(section, "scheduler.params", "depend on the type"));
  t.push_back(used_key(number, "scheduler.params.warmup_min_lr", "rate at the start; auto: 0")
                  .standard(0.0)
                  .or_auto()
                  .at_least(0)
                  .only_for(linear));
  t.push_back(used_key(number, "scheduler.params.warmup_max_lr",
                       "rate after the warm-up; auto: the optimizer's; WarmupLR's default too, else 0.001")
                  .or_auto()
                  .or_null()
                  .at_least(0)
                  .only_for({"WarmupLR"}));
  t.push_back(used_key(number, "scheduler.params.warmup_max_lr", "rate after the warm-up; auto: the optimizer's")
                  .standard(0.001)
                  .or_auto()
                  .at_least(0)
                  .only_for({"WarmupDecayLR"}));
  t.push_back(used_key(integer, "scheduler.params.warmup_num_steps", "steps of the warm-up; auto: 1, none in effect")
                  .standard(1000)
                  .or_auto()
                  .at_least(1));
  t.push_back(used_key(choice, "scheduler.params.warmup_type", "shape of the warm-up: log rises fast at first")
                  .standard("log")
                  .one_of({"log", "linear"}));
  t.push_back(used_key(integer, "scheduler.params.total_num_steps", "steps of the whole schedule; auto: max_steps")
                  .required()
                  .or_auto()
                  .at_least(1)
                  .only_for({"WarmupDecayLR", "WarmupCosineLR"}));
  t.push_back(
      used_key(number, "scheduler.params.warmup_min_ratio", "the warm-up starts at this share of optimizer.params.lr")
          .standard(0.0)
          .at_least(0)
          .at_most(1)
          .only_for(cosine));
  t.push_back(used_key(number, "scheduler.params.cos_min_ratio", "the cosine ends at this share of optimizer.params.lr")
                  .standard(1e-4)
                  .at_least(0)
                  .at_most(1)
                  .only_for(cosine));
  t.push_back(refused_key(number, "scheduler.params.warmup_max_lr", "of the other schedules",
                          "WarmupCosineLR takes its highest rate from optimizer.params.lr: remove this key")
                  .or_auto()
                  .only_for(cosine));
  t.push_back(refused_key(number, "scheduler.params.warmup_min_lr", "of the other schedules",
                          "WarmupCosineLR has shares of optimizer.params.lr in place of rates: use warmup_min_ratio")
                  .or_auto()
                  .only_for(cosine));
}

}  // namespace

void add_optimizer_keys(std::vector<Key>& table) {
  add_optimizer(table);
  add_scheduler(table);
}

}  // namespace zt
