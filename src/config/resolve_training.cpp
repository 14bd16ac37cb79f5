// Rules of the optimizer and the schedule.
#include "config/resolver.h"

namespace zt {

void Resolver::resolve_optimizer() {
  const Json* section = tree_.find("optimizer");
  const bool has_section = section != nullptr && section->is_object();
  const std::string lr = "optimizer.params.lr";
  set_auto(lr, 5e-5);
  set_auto("optimizer.params.betas", Json::array({0.9, 0.999}));
  set_auto("optimizer.params.eps", 1e-8);
  set_auto("optimizer.params.weight_decay", 0.0);
  if (!checked_.selected.contains("optimizer.type")) return;
  if (!has_section) {
    values_[lr] = 3e-4;
    notice("optimizer", "none given, so AdamW with lr 3e-4");
  } else if (!given(lr) && !checked_.wrong.contains(lr)) {
    values_[lr] = 1e-3;
    notice(lr, "1e-3 by default");
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
  if (is("optimizer.type", "SGD") &&
      known({"optimizer.params.nesterov", "optimizer.params.momentum", "optimizer.params.dampening"}) &&
      get<bool>("optimizer.params.nesterov") &&
      (get<double>("optimizer.params.momentum") == 0.0 || get<double>("optimizer.params.dampening") != 0.0)) {
    problem("optimizer.params.nesterov",
            "true needs momentum above 0 and dampening 0: give \"momentum\": 0.9, or set it to "
            "false");
  }
}

void Resolver::resolve_scheduler() {
  const std::string params = "scheduler.params.";
  const Json* section = tree_.find("scheduler");
  if (section != nullptr && section->is_object() && !section->empty() && tree_.find("scheduler.type") == nullptr) {
    problem("scheduler.type", "missing; allowed: \"WarmupLR\", \"WarmupDecayLR\" or \"WarmupCosineLR\"");
  }
  set_auto(params + "warmup_min_lr", 0.0);
  set_auto(params + "warmup_num_steps", 1, "no warm-up in effect");
  if (known({"training.max_steps"})) {
    set_auto(params + "total_num_steps", get<std::int64_t>("training.max_steps"), "training.max_steps");
  }
  const std::string highest = params + "warmup_max_lr";
  if (known({"optimizer.params.lr"})) {
    const auto lr = get<double>("optimizer.params.lr");
    set_auto(highest, lr, "optimizer.params.lr");
    if (is("scheduler.type", "WarmupLR") && !known({highest.c_str()}) && !checked_.wrong.contains(highest)) {
      values_[highest] = lr;
    }
    const bool sets_rate = is("scheduler.type", "WarmupLR") || is("scheduler.type", "WarmupDecayLR");
    if (sets_rate && known({highest.c_str()}) && get<double>(highest) != lr && given("optimizer.params.lr")) {
      notice("optimizer.params.lr",
             "has no effect: the schedule goes up to " + highest + " " + values_[highest].dump());
    }
  }
  const std::string total = params + "total_num_steps";
  const std::string warmup = params + "warmup_num_steps";
  if (!known({total.c_str(), warmup.c_str()})) return;
  const auto total_steps = get<std::int64_t>(total);
  const auto warmup_steps = get<std::int64_t>(warmup);
  if (total_steps < warmup_steps) {
    problem(total, "found " + std::to_string(total_steps) + ", fewer than warmup_num_steps " +
                       std::to_string(warmup_steps) + (given(warmup) ? "" : " (the default)") +
                       ": raise it or lower warmup_num_steps");
  } else if (known({"training.max_steps"}) && get<std::int64_t>("training.max_steps") > total_steps) {
    notice(total, std::to_string(total_steps) + " is below training.max_steps: the rate stays at its lowest after it");
  }
}

}  // namespace zt
