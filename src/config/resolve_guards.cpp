// Rules of the loss scale, and of what ends a run early or keeps an update from it.
#include <cmath>

#include "config/resolver.h"
#include "core/precision.h"

namespace zt {

void Resolver::resolve_loss_scale() {
  if (!known({"fp16.enabled", "fp16.loss_scale", "fp16.initial_scale_power", "fp16.min_loss_scale"})) return;
  const bool retries = known({"fp16.on_overflow"}) && get<std::string>("fp16.on_overflow") == "retry";
  if (!get<bool>("fp16.enabled")) {
    if (retries && given("fp16.enabled"))
      notice("fp16.on_overflow", "has no effect: fp16 is not enabled, and nothing else has a loss scale");
    return;
  }
  if (get<double>("fp16.loss_scale") != 0.0) {
    tell_static_scale();
    if (retries) {
      problem("fp16.on_overflow",
              "found \"retry\", which lowers the loss scale and runs the batch again, but "
              "fp16.loss_scale " +
                  shown("fp16.loss_scale") +
                  " is static: use \"skip\", or set fp16.loss_scale to 0 for a dynamic scale");
    }
    return;
  }
  const auto power = get<std::int64_t>("fp16.initial_scale_power");
  if (std::ldexp(1.0, static_cast<int>(power)) < get<double>("fp16.min_loss_scale")) {
    problem("fp16.min_loss_scale", "found " + shown("fp16.min_loss_scale") + ", above the first scale, 2 to the " +
                                       std::to_string(power) + ": lower it or raise fp16.initial_scale_power");
  }
  if (!given("fp16.initial_scale_power")) {
    notice("fp16.initial_scale_power",
           std::string("32 by default (newer versions of DeepSpeed: 16): expect the first ") +
               (retries ? "step to be run again" : "steps to be skipped") + " until the scale fits");
  }
  if (!retries || !known({"fp16.hysteresis"})) return;
  if (given("fp16.hysteresis") && get<std::int64_t>("fp16.hysteresis") > 1) {
    notice("fp16.hysteresis",
           "1 with fp16.on_overflow \"retry\": the scale is halved for every retry, or the batch would overflow for "
           "ever");
  }
  values_["fp16.hysteresis"] = 1;
}

void Resolver::tell_static_scale() {
  std::string unused;
  bool several = false;
  for (const char* name :
       {"initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis", "min_loss_scale"}) {
    if (!differs_from_default(std::string("fp16.") + name)) continue;
    several = !unused.empty();
    unused += (several ? ", " : "") + std::string(name);
  }
  if (!unused.empty()) {
    notice("fp16.loss_scale", shown("fp16.loss_scale") + " is static, not 0 (dynamic): " + unused +
                                  (several ? " have no effect" : " has no effect"));
  }
  if (get<double>("fp16.loss_scale") < 1.0) {
    notice("fp16.loss_scale", shown("fp16.loss_scale") +
                                  " is below 1: it makes small gradients smaller, where scaling is to keep them from "
                                  "becoming 0");
  }
}

// With training.report_delay the device updates before the host has seen the step, so every step that is not applied
// must be one that ends the run.
void Resolver::check_report_delay() {
  if (!known({"training.report_delay"}) || get<std::int64_t>("training.report_delay") == 0) return;
  const auto refuse = [&](const std::string& why) {
    problem("training.report_delay", "found 1, but " + why + ", and that must be known at once: use 0");
  };
  const bool precision_is_known = !is_true("amp.enabled") || known({"amp.opt_level"});
  if (!precision_is_known || (is_true("torch_autocast.enabled") && !known({"torch_autocast.dtype"}))) return;
  if (precision_preset(preset()).scales_loss()) {
    return refuse("the loss is scaled, and a step whose gradients overflow is skipped");
  }
  if (is_true("bf16.enabled") && known({"bf16.check_grad_overflow"}) && get<bool>("bf16.check_grad_overflow")) {
    return problem("training.report_delay",
                   "found 1, but with bf16.check_grad_overflow a step that is not finite is skipped, and that must be "
                   "known at once: set bf16.check_grad_overflow to false (such a step then ends the run), or use 0");
  }
  if (known({"training.spike_guard.action"}) && get<std::string>("training.spike_guard.action") != "off")
    refuse("training.spike_guard keeps steps from the weights");
}

void Resolver::resolve_guards() {
  check_report_delay();
  const std::string patience = "training.early_stopping.patience";
  const std::string interval = "training.eval_interval";
  if (given("training.early_stopping.min_delta") && !given(patience) && !checked_.wrong.contains(patience)) {
    problem(patience,
            "missing: min_delta alone stops nothing; give how many evaluations without improvement end the "
            "run, as 3, or 0 for never");
  }
  if (known({patience.c_str(), interval.c_str()}) && get<std::int64_t>(patience) > 0) {
    const auto evaluations = get<std::int64_t>(patience);
    const auto steps = get<std::int64_t>(interval);
    if (steps == 0) {
      problem(patience, "found " + std::to_string(evaluations) +
                            ", which counts evaluations, but training.eval_interval is 0, none: give it a number of "
                            "steps, or set patience to 0");
    } else if (known({"training.max_steps"}) && evaluations >= get<std::int64_t>("training.max_steps") / steps) {
      notice(patience, "cannot end this run early: training.max_steps leaves " +
                           std::to_string(get<std::int64_t>("training.max_steps") / steps) +
                           " evaluation(s) on the way, and the first one always improves");
    }
  }

  const std::string action = "training.spike_guard.action";
  const std::string window = "training.spike_guard.window";
  if ((given("training.spike_guard.deviations") || given(window)) && !given(action) &&
      !checked_.wrong.contains(action)) {
    problem(action, "missing: say what becomes of a step that jumps, \"skip\" or \"stop\"; or \"off\"");
  }
  if (known({action.c_str(), window.c_str(), "training.max_steps"}) && get<std::string>(action) != "off" &&
      get<std::int64_t>(window) >= get<std::int64_t>("training.max_steps")) {
    notice(window, std::to_string(get<std::int64_t>(window)) +
                       " applied steps must be seen first, and training.max_steps is " +
                       std::to_string(get<std::int64_t>("training.max_steps")) + ": the spike guard never acts");
  }
}

}  // namespace zt
