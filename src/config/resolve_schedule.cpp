// Rules of the schedules.
#include <algorithm>
#include <cmath>

#include "config/resolver.h"

namespace zt {

void Resolver::resolve_scheduler() {
  const std::string params = "scheduler.params.";
  const Json* section = tree_.find("scheduler");
  if (section != nullptr && section->is_object() && !section->empty() && tree_.find("scheduler.type") == nullptr) {
    problem("scheduler.type",
            "missing; allowed: \"WarmupLR\", \"WarmupDecayLR\", \"WarmupCosineLR\", \"OneCycle\" or \"LRRangeTest\"");
  }
  if (section != nullptr && section->is_object() && section->empty()) {
    notice("scheduler", "has no effect: it is empty, so the rate is constant");
  }
  if (is("scheduler.type", "OneCycle")) {
    resolve_cycle();
  } else if (is("scheduler.type", "LRRangeTest")) {
    const std::string lowest = params + "lr_range_test_min_lr";
    if (given("optimizer.params.lr") && known({"optimizer.params.lr", lowest.c_str()}) &&
        values_["optimizer.params.lr"] != values_[lowest]) {
      notice("optimizer.params.lr", "has no effect: LRRangeTest starts at " + lowest + " " + shown(lowest));
    }
  } else {
    resolve_warmup();
  }
}

void Resolver::resolve_warmup() {
  const std::string params = "scheduler.params.";
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
      notice("optimizer.params.lr", "has no effect: the schedule goes up to " + highest + " " + shown(highest));
    }
  }
  const std::string lowest = params + "warmup_min_lr";
  if (known({lowest.c_str(), highest.c_str()}) && get<double>(lowest) > get<double>(highest)) {
    problem(lowest, "found " + shown(lowest) + ", above warmup_max_lr " + shown(highest) +
                        ": a warm-up rises from warmup_min_lr to warmup_max_lr");
  }
  const std::string total = params + "total_num_steps";
  const std::string warmup = params + "warmup_num_steps";
  if (!known({warmup.c_str()})) return;
  if (known({"training.max_steps"}) && get<std::int64_t>(warmup) > get<std::int64_t>("training.max_steps")) {
    notice(warmup, shown(warmup) + (given(warmup) ? "" : " by default") + " is more than training.max_steps " +
                       shown("training.max_steps") + ": the run ends within the warm-up");
  }
  if (!known({total.c_str()})) return;
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

void Resolver::resolve_cycle() {
  const std::string params = "scheduler.params.";
  const std::string low = params + "cycle_min_lr";
  const std::string high = params + "cycle_max_lr";
  if (holds_auto(high)) {
    if (known({"optimizer.params.lr"})) set_auto(high, values_["optimizer.params.lr"], "optimizer.params.lr");
  } else if (given("optimizer.params.lr") && known({"optimizer.params.lr", low.c_str(), high.c_str()}) &&
             values_["optimizer.params.lr"] != values_[high]) {
    notice("optimizer.params.lr", "has no effect: OneCycle goes from cycle_min_lr " + shown(low) + " to cycle_max_lr " +
                                      shown(high) + " and back");
  }
  if (known({low.c_str(), high.c_str()}) && get<double>(low) > get<double>(high)) {
    problem(low, "found " + shown(low) + ", above cycle_max_lr " + shown(high) +
                     ": the cycle rises from cycle_min_lr to cycle_max_lr and falls back: exchange them");
  }

  const std::string first = params + "cycle_first_step_size";
  const std::string second = params + "cycle_second_step_size";
  const std::string stairs = params + "cycle_second_stair_count";
  const bool knows_steps = known({"training.max_steps"});
  const std::int64_t max_steps = knows_steps ? get<std::int64_t>("training.max_steps") : 0;
  if (knows_steps) set_auto(first, std::max<std::int64_t>(1, max_steps / 2), "half of training.max_steps");
  const auto take_over = [&](const std::string& path, const std::string& from) {
    if (!known({from.c_str()}) || checked_.wrong.contains(path)) return;
    set_auto(path, values_[from], "as many as on the way up");
    if (!known({path.c_str()})) values_[path] = values_[from];
  };
  take_over(second, first);
  take_over(stairs, params + "cycle_first_stair_count");

  const std::string size = params + "decay_step_size";
  if (known({size.c_str()}) && get<std::int64_t>(size) == 0) {
    for (const char* rate : {"decay_lr_rate", "decay_mom_rate"}) {
      if (differs_from_default(params + rate)) {
        notice(params + rate, "has no effect: decay_step_size is 0, which means no decay");
      }
    }
  }
  if (knows_steps && known({first.c_str(), second.c_str()})) {
    std::int64_t length = 0;
    const bool overflows = __builtin_add_overflow(get<std::int64_t>(first), get<std::int64_t>(second), &length);
    if (overflows || length > max_steps) {
      notice(first, "the cycle takes " + (overflows ? "more than 64 bits count" : std::to_string(length)) +
                        " steps, more than training.max_steps " + std::to_string(max_steps) +
                        ": the run ends within it");
    }
  }
  resolve_cycle_momentum();
}

void Resolver::resolve_cycle_momentum() {
  const std::string params = "scheduler.params.";
  const std::string on = params + "cycle_momentum";
  const std::string low = params + "cycle_min_mom";
  const std::string high = params + "cycle_max_mom";
  const std::string rate = params + "decay_mom_rate";
  if (!known({on.c_str()})) return;
  const bool sgd = is("optimizer.type", "SGD");
  if (get<bool>(on)) {
    const bool plain = sgd && known({"optimizer.params.momentum"}) && get<double>("optimizer.params.momentum") == 0.0;
    if (plain || is("optimizer.type", "Adagrad")) {
      values_[on] = false;
      notice(on, plain ? "switched off: SGD without momentum has none to move; optimizer.params.momentum above 0 has"
                       : "switched off: Adagrad has no momentum to move");
    }
  }
  if (!get<bool>(on)) {
    for (const std::string& path : {low, high, rate}) {
      if (differs_from_default(path)) notice(path, "has no effect: cycle_momentum is false");
    }
    return;
  }
  if (sgd || is("optimizer.type", "Muon")) {
    notice("optimizer.params.momentum",
           "OneCycle moves it (DeepSpeed moves only Adam's betas); \"cycle_momentum\": false leaves it as it is");
  }
  if (!sgd && differs_from_default("optimizer.params.betas")) {
    notice(
        "optimizer.params.betas",
        "have no effect: OneCycle moves the first and sets the second to 0.99; \"cycle_momentum\": false leaves them");
  }
  if (!known({low.c_str(), high.c_str()})) return;
  const auto highest = get<double>(high);
  if (get<double>(low) > highest) {
    problem(low, "found " + shown(low) + ", above cycle_max_mom " + shown(high) +
                     (given(high) ? "" : " (the default)") +
                     ": momentum falls from cycle_max_mom to cycle_min_mom and rises back: lower it");
  }
  const std::string first = params + "cycle_first_step_size";
  const std::string second = params + "cycle_second_step_size";
  const std::string size = params + "decay_step_size";
  if (!known({rate.c_str(), size.c_str(), first.c_str(), second.c_str(), "training.max_steps"})) return;
  const auto decay_size = static_cast<double>(get<std::int64_t>(size));
  // Steps past the cycle when the last update of the run is made.
  const double past = static_cast<double>(get<std::int64_t>("training.max_steps") - 1) -
                      static_cast<double>(get<std::int64_t>(first)) - static_cast<double>(get<std::int64_t>(second));
  if (decay_size == 0.0 || past <= 0.0 || highest * (1.0 + get<double>(rate) * past / decay_size) < 1.0) return;
  const double limit = (1.0 / highest - 1.0) * decay_size / past;
  const double digits = std::pow(10.0, 1.0 - std::floor(std::log10(limit)));
  problem(rate, "found " + shown(rate) +
                    ", which raises momentum to 1 or more within training.max_steps; it must stay below 1, as with a "
                    "rate of " +
                    Json(std::floor(limit * digits) / digits).dump());
}

}  // namespace zt
