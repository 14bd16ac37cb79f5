// Rules of precision and optimizer.
#include <cmath>

#include "config/resolver.h"

namespace zt {

void Resolver::resolve_precision() {
  if (holds_auto("fp16.enabled")) {
    set_auto("fp16.enabled", false, "fp16 is used only where it is asked for");
  }
  if (holds_auto("bf16.enabled")) {
    const bool fp16 = known({"fp16.enabled"}) && get<bool>("fp16.enabled");
    if (fp16) {
      set_auto("bf16.enabled", false, "since fp16 is enabled");
    } else {
      set_auto("bf16.enabled", options_.bf16_is_fast,
               options_.bf16_is_fast ? "the device is fast at it" : "the device is not fast at it: training in fp32");
    }
  }
  if (!known({"fp16.enabled", "bf16.enabled"})) return;
  const bool fp16 = get<bool>("fp16.enabled");
  const bool bf16 = get<bool>("bf16.enabled");
  if (fp16 && bf16) {
    problem("fp16.enabled", "fp16 and bf16 (" + where("bf16.enabled") + ") are both enabled: set one of them to false");
    return;
  }
  const std::string dtype = fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
  if (known({"data_types.grad_accum_dtype"})) {
    const auto sum = get<std::string>("data_types.grad_accum_dtype");
    if (sum != "fp32" && sum != dtype) {
      problem("data_types.grad_accum_dtype", "found \"" + sum + "\"; allowed when training in " + dtype + ": \"fp32\"" +
                                                 (dtype == "fp32" ? "" : " or \"" + dtype + "\""));
    }
  } else if (known({"gradient_accumulation_steps"}) && !checked_.wrong.contains("data_types.grad_accum_dtype")) {
    values_["data_types.grad_accum_dtype"] = get<std::int64_t>("gradient_accumulation_steps") > 1 ? "fp32" : dtype;
  }
  if (known({"communication_data_type"})) {
    const auto wire = get<std::string>("communication_data_type");
    if (wire != dtype) {
      problem("communication_data_type", "found \"" + wire +
                                             "\"; this version sends gradients in the format it trains "
                                             "in: use \"" +
                                             dtype + "\" or remove the key");
    }
  } else if (!checked_.wrong.contains("communication_data_type")) {
    values_["communication_data_type"] = dtype;
  }
  if (!fp16 || !known({"fp16.loss_scale", "fp16.initial_scale_power", "fp16.min_loss_scale"})) return;
  if (get<double>("fp16.loss_scale") != 0.0) return;
  const auto power = get<std::int64_t>("fp16.initial_scale_power");
  if (std::ldexp(1.0, static_cast<int>(power)) < get<double>("fp16.min_loss_scale")) {
    problem("fp16.min_loss_scale", "found " + values_["fp16.min_loss_scale"].dump() +
                                       ", above the first scale, 2 to the " + std::to_string(power) +
                                       ": lower it or raise fp16.initial_scale_power");
  }
  if (!given("fp16.initial_scale_power")) {
    notice("fp16.initial_scale_power",
           "32 by default (newer versions of DeepSpeed: 16): expect the first steps to be "
           "skipped until the scale fits");
  }
}

void Resolver::resolve_optimizer() {
  const Json* section = tree_.find("optimizer");
  const bool has_section = section != nullptr && section->is_object();
  const std::string lr = "optimizer.params.lr";
  set_auto(lr, 5e-5);
  set_auto("optimizer.params.betas", Json::array({0.9, 0.999}));
  const bool adagrad = is("optimizer.type", "Adagrad");
  set_auto("optimizer.params.eps", adagrad ? 1e-10 : 1e-8);
  set_auto("optimizer.params.weight_decay", 0.0);
  if (!checked_.selected.contains("optimizer.type")) return;
  if (!has_section) {
    values_[lr] = 3e-4;
    notice("optimizer", "none given, so AdamW with lr 3e-4");
  } else if (!given(lr) && !checked_.wrong.contains(lr)) {
    values_[lr] = adagrad ? 1e-2 : 1e-3;
    notice(lr, adagrad ? "1e-2 by default" : "1e-3 by default");
  }
  if (has_section && !given("optimizer.type")) notice("optimizer.type", "AdamW by default");
  const std::string mode = "optimizer.params.adam_w_mode";
  if (is("optimizer.type", "Adam") && !given(mode) && !checked_.wrong.contains(mode)) {
    notice("optimizer.type",
           "\"Adam\" decays weights as AdamW does, as in DeepSpeed; \"adam_w_mode\": false asks for L2");
  }
  if (is("optimizer.type", "AdamW") && known({mode.c_str()}) && !get<bool>(mode)) {
    problem(mode, "found false, but AdamW is the decoupled form: use \"type\": \"Adam\" for L2, or remove the key");
  }
  resolve_momentum();
  resolve_excluded_decay();
}

void Resolver::resolve_momentum() {
  const std::string nesterov = "optimizer.params.nesterov";
  const std::string dampening = "optimizer.params.dampening";
  if (!is("optimizer.type", "SGD") || !known({nesterov.c_str(), dampening.c_str(), "optimizer.params.momentum"}))
    return;
  const bool without_momentum = get<double>("optimizer.params.momentum") == 0.0;
  const bool damped = get<double>(dampening) != 0.0;
  if (get<bool>(nesterov) && (without_momentum || damped)) {
    problem(nesterov, "true needs momentum above 0 and dampening 0: give \"momentum\": 0.9" +
                          std::string(damped ? " and no dampening" : "") + ", or set it to false");
  } else if (damped && without_momentum) {
    notice(dampening, "has no effect: it dampens what enters the momentum, and momentum is 0");
  }
}

void Resolver::resolve_excluded_decay() {
  const std::string exclude = "optimizer.params.weight_decay_exclude";
  if (!known({exclude.c_str(), "optimizer.params.weight_decay"}) || values_[exclude].empty()) return;
  if (get<double>("optimizer.params.weight_decay") == 0.0) {
    notice(exclude, "has no effect: weight_decay is 0");
    return;
  }
  for (const Json& kind : values_[exclude]) {
    if (kind == "layer_norm" && is("model.type", "mlp")) notice(exclude, "an mlp has no \"layer_norm\" to exclude");
  }
}

}  // namespace zt
