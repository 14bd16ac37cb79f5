// DeepSpeed's section optimizer.
#include "config/keys.h"

namespace zt {
namespace {

using enum KeyType;

void add_optimizer(std::vector<Key>& t) {
  const std::vector<std::string> adam = {"Adam", "AdamW"};
  const std::vector<std::string> sgd = {"SGD"};
  const std::vector<std::string> adagrad = {"Adagrad"};
  const std::vector<std::string> lamb = {"Lamb"};
  const std::vector<std::string> muon = {"Muon"};
  const std::vector<std::string> dividing = {"Adam", "AdamW", "Lamb"};  // by the root of an average of squares
  const std::vector<std::string> averaging = {"Adam", "AdamW", "Lion", "Lamb"};
  const std::string one_bit = "1-bit optimizers do not work with ZeRO (nor do they in DeepSpeed): use \"AdamW\"";
  const std::string mu = "this version has no widths of muP: use \"AdamW\" or \"SGD\"";
  const std::string implementation = "there is one implementation of Adam here: use \"Adam\" or \"AdamW\"";
  t.push_back(used_key(section, "optimizer", "without it: AdamW with lr 3e-4"));
  t.push_back(used_key(choice, "optimizer.type", "the rule of the update")
                  .standard("AdamW")
                  .one_of({"Adam", "AdamW", "SGD", "Adagrad", "Lion", "Lamb", "Muon"})
                  .in_any_case()
                  .refusing("OneBitAdam", one_bit)
                  .refusing("ZeroOneAdam", one_bit)
                  .refusing("OneBitLamb", one_bit)
                  .refusing("MuAdam", mu)
                  .refusing("MuAdamW", mu)
                  .refusing("MuSGD", mu)
                  .refusing("FusedAdam", implementation)
                  .refusing("CPUAdam", implementation)
                  .refusing("DeepSpeedCPUAdam", implementation)
                  .others("this version has Adam, AdamW, SGD, Adagrad, Lion, Lamb and Muon: use \"AdamW\""));
  t.push_back(notice_key(boolean, "optimizer.legacy_fusion", "of fused LAMB", "there is one implementation of each")
                  .unless({false}));
  t.push_back(used_key(section, "optimizer.params", "depend on the type"));
  t.push_back(used_key(number, "optimizer.params.lr",
                       "learning rate; if the section lacks it 1e-3 (Adagrad: 1e-2, Muon: 0.02); auto: 5e-5")
                  .or_auto()
                  .at_least(0));
  t.push_back(used_key(numbers, "optimizer.params.betas", "decay of the running averages; auto: the default")
                  .standard({0.9, 0.999})
                  .or_auto()
                  .length(2, 2)
                  .at_least(0)
                  .below(1)
                  .only_for(averaging));
  t.push_back(used_key(numbers, "optimizer.params.betas",
                       "of the Adam that updates what is no matrix of a hidden layer; auto: the default")
                  .standard({0.9, 0.95})
                  .or_auto()
                  .length(2, 2)
                  .at_least(0)
                  .below(1)
                  .only_for(muon));
  t.push_back(used_key(number, "optimizer.params.eps", "added to the root of the second average; auto: the default")
                  .standard(1e-8)
                  .or_auto()
                  .above(0)
                  .only_for(dividing));
  t.push_back(used_key(number, "optimizer.params.eps", "added to the root of the sum of squares; auto: the default")
                  .standard(1e-10)
                  .or_auto()
                  .above(0)
                  .only_for(adagrad));
  t.push_back(used_key(number, "optimizer.params.eps", "of that Adam; auto: the default")
                  .standard(1e-10)
                  .or_auto()
                  .above(0)
                  .only_for(muon));
  t.push_back(used_key(number, "optimizer.params.weight_decay",
                       "decoupled; L2 (SGD; Adagrad; Adam without adam_w_mode); or a part of the direction (Lamb)")
                  .standard(0.0)
                  .or_auto()
                  .at_least(0));
  t.push_back(used_key(strings, "optimizer.params.weight_decay_exclude",
                       "what weight decay leaves alone (not in DeepSpeed): bias, the biases of linear layers; "
                       "layer_norm, weights and biases of norms")
                  .standard(Json::array())
                  .one_of({"bias", "layer_norm"}));
  t.push_back(used_key(boolean, "optimizer.params.adam_w_mode", "true: decoupled weight decay, even for type Adam")
                  .standard(true)
                  .only_for({"Adam", "AdamW", "Muon"}));
  t.push_back(
      used_key(boolean, "optimizer.params.bias_correction", "divides the averages by 1 - beta^t, as they start from 0")
          .standard(true)
          .only_for(dividing));
  t.push_back(used_key(boolean, "optimizer.params.amsgrad",
                       "AMSGrad: divides by the root of the largest second average so far; 4 bytes a parameter more")
                  .standard(false)
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
  t.push_back(used_key(number, "optimizer.params.momentum",
                       "of the matrices of hidden layers: the share that a running average keeps")
                  .standard(0.95)
                  .at_least(0)
                  .below(1)
                  .only_for(muon));
  t.push_back(used_key(number, "optimizer.params.dampening", "of the gradient that enters the momentum")
                  .standard(0.0)
                  .at_least(0)
                  .at_most(1)
                  .only_for(sgd));
  t.push_back(used_key(boolean, "optimizer.params.nesterov", "looks ahead; needs momentum and no dampening")
                  .standard(false)
                  .only_for(sgd));
  t.push_back(used_key(boolean, "optimizer.params.nesterov", "looks ahead (not in DeepSpeed, which always does)")
                  .standard(true)
                  .only_for(muon));
  t.push_back(used_key(number, "optimizer.params.muon_lr",
                       "learning rate of the matrices of hidden layers in place of lr; a schedule moves it with lr")
                  .at_least(0)
                  .only_for(muon));
  t.push_back(
      used_key(
          number, "optimizer.params.adam_lr",
          "learning rate of all else in place of lr (3e-4 where that is not given either); a schedule moves it with lr")
          .at_least(0)
          .only_for(muon));
  t.push_back(notice_key(choice, "optimizer.params.ns_method", "how the Newton-Schulz iteration is computed",
                         "it is computed as published, in fp32, whichever is named")
                  .one_of({"gram", "standard"})
                  .only_for(muon));
  t.push_back(refused_key(boolean, "optimizer.params.per_head_muon", "makes each head's part of a matrix orthogonal",
                          "a matrix is made orthogonal as a whole here: set it to false or remove it")
                  .unless({false})
                  .only_for(muon));
  t.push_back(used_key(number, "optimizer.params.lr_decay", "update t has the rate lr / (1 + (t - 1) lr_decay)")
                  .standard(0.0)
                  .at_least(0)
                  .only_for(adagrad));
  t.push_back(used_key(number, "optimizer.params.initial_accumulator_value", "what the sums of squares start from")
                  .standard(0.0)
                  .at_least(0)
                  .only_for(adagrad));
  t.push_back(
      used_key(number, "optimizer.params.max_coeff",
               "the step of a tensor is scaled by its norm over that of its direction, but by no more than this")
          .standard(10.0)
          .above(0)
          .only_for(lamb));
  t.push_back(used_key(number, "optimizer.params.min_coeff", "nor by less than this")
                  .standard(0.01)
                  .at_least(0)
                  .only_for(lamb));
  t.push_back(
      used_key(boolean, "optimizer.params.eps_inside_sqrt", "adds eps to the average of squares, under the root")
          .standard(false)
          .only_for(lamb));
  t.push_back(refused_key(boolean, "optimizer.params.amsgrad", "of Adam",
                          "Lamb has no such variant, nor has it in DeepSpeed: set it to false or remove it")
                  .unless({false})
                  .only_for(lamb));
}

// What PyTorch's or DeepSpeed's implementations take and what is the same for the one here.
void add_implementation_keys(std::vector<Key>& t) {
  t.push_back(alias_key("optimizer.params.adamw_mode", "optimizer.params.adam_w_mode"));
  for (const char* name : {"fused", "foreach", "capturable", "differentiable", "set_grad_none", "use_triton"}) {
    t.push_back(notice_key(anything, std::string("optimizer.params.") + name, "which implementation",
                           "there is one implementation of each optimizer")
                    .unless({false, nullptr}));
  }
  t.push_back(refused_key(boolean, "optimizer.params.maximize", "climbs in place of falling",
                          "the loss is minimized here: set it to false or remove it")
                  .unless({false}));
  for (const char* name :
       {"freeze_step", "cuda_aware", "comm_backend_name", "var_freeze_step", "var_update_scaler", "local_step_scaler",
        "local_step_clipper", "coeff_beta", "factor_max", "factor_min", "factor_threshold"}) {
    t.push_back(refused_key(anything, std::string("optimizer.params.") + name, "of the 1-bit optimizers",
                            "a key of DeepSpeed's 1-bit optimizers, which no other one takes: remove it"));
  }
}

// Keys that mean another optimizer's: refused with what says the same here.
void add_strangers(std::vector<Key>& t) {
  const std::string of_others = "of the other optimizers";
  const std::string no_momentum = "Adagrad has a sum of squares and no momentum: remove this key, or use \"AdamW\"";
  t.push_back(refused_key(anything, "optimizer.params.betas", of_others,
                          "SGD averages gradients by one number: use \"momentum\"")

                  .only_for({"SGD"}));
  t.push_back(refused_key(anything, "optimizer.params.momentum", of_others,
                          "Adam's momentum is the first of its betas: use \"betas\": [momentum, 0.999]")
                  .only_for({"Adam", "AdamW"}));
  t.push_back(refused_key(anything, "optimizer.params.momentum", of_others,
                          "Lion's momentum decays by its betas: use \"betas\": [0.9, 0.99]")
                  .only_for({"Lion"}));
  t.push_back(refused_key(anything, "optimizer.params.momentum", of_others,
                          "Lamb's momentum is the first of its betas: use \"betas\": [momentum, 0.999]")
                  .only_for({"Lamb"}));
  t.push_back(refused_key(anything, "optimizer.params.eps", of_others, "Lion divides by nothing: remove this key")
                  .only_for({"Lion"}));
  t.push_back(refused_key(anything, "optimizer.params.betas", of_others, no_momentum).only_for({"Adagrad"}));
  t.push_back(refused_key(anything, "optimizer.params.momentum", of_others, no_momentum).only_for({"Adagrad"}));
  t.push_back(refused_key(anything, "optimizer.params.lr_decay", of_others,
                          "only Adagrad slows down by itself: use a scheduler, as WarmupDecayLR")
                  .unless({0.0})
                  .only_for({"Adam", "AdamW", "SGD", "Lion", "Lamb", "Muon"}));
}

}  // namespace

void add_optimizer_keys(std::vector<Key>& table) {
  add_optimizer(table);
  add_implementation_keys(table);
  add_strangers(table);
}

}  // namespace zt
