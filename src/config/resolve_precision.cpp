// Rules of number formats: which preset of core/precision.h the sections fp16, bf16, amp and torch_autocast ask for,
// and which formats may replace its own.
#include <algorithm>
#include <cmath>

#include "config/resolver.h"

namespace zt {

namespace {

const std::vector<std::string> sections = {"fp16", "bf16", "amp", "torch_autocast"};

std::string enabled_key(const std::string& section) { return section + ".enabled"; }

// "fp16, bf16 and amp"
std::string enumeration(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace

// A section that never says whether it is on is off, which is easily missed; a written false is meant.
void Resolver::tell_unused_sections() {
  for (const std::string& section : sections) {
    if (tree_.find(enabled_key(section)) != nullptr) continue;
    const auto key = checked_.given.lower_bound(section + ".");
    if (key == checked_.given.end() || !key->first.starts_with(section + ".")) continue;
    notice(section, "has no effect: " + enabled_key(section) + " is not given (false by default)");
  }
}

void Resolver::refuse_several_precisions(const std::vector<std::string>& enabled) {
  std::string origins;
  for (std::size_t i = 1; i < enabled.size(); ++i) {
    const std::string origin = where(enabled_key(enabled[i]));
    if (origin.empty()) continue;
    origins += (origins.empty() ? "; " : ", ") + enabled_key(enabled[i]) +
               (origin == "--set" ? " comes from --set" : " stands at " + origin);
  }
  problem(enabled_key(enabled.front()), enumeration(enabled) +
                                            (enabled.size() == 2 ? " are both enabled: set one of them to false"
                                                                 : " are all enabled: set all but one to false") +
                                            origins);
}

void Resolver::resolve_precision() {
  tell_unused_sections();
  set_auto("fp16.enabled", false, "fp16 is used only where it is asked for");
  set_auto("amp.enabled", false, "amp is used only where it is asked for");
  set_auto("torch_autocast.enabled", false, "autocast is used only where it is asked for");
  set_auto("amp.opt_level", "O1", "apex's default");
  if (holds_auto("bf16.enabled")) {
    std::string other;
    for (const std::string& section : sections) {
      if (section != "bf16" && is_true(enabled_key(section))) other = section;
    }
    if (!other.empty()) {
      set_auto("bf16.enabled", false, "since " + other + " is enabled");
    } else {
      const bool on_gpu = known({"device.type"}) ? get<std::string>("device.type") == "cuda" : options_.expects_gpu;
      const bool is_fast = on_gpu || options_.bf16_is_fast;
      set_auto("bf16.enabled", is_fast,
               is_fast ? "the device is fast at it" : "the device is not fast at it: training in fp32");
    }
  }
  std::vector<std::string> enabled;
  for (const std::string& section : sections) {
    if (!known({enabled_key(section).c_str()})) return;  // told already
    if (is_true(enabled_key(section))) enabled.push_back(section);
  }
  if (enabled.size() > 1) return refuse_several_precisions(enabled);
  resolve_masters();
  if (is_true("amp.enabled")) resolve_amp();
  resolve_formats();
}

bool Resolver::is_true(const std::string& path) const {
  const auto value = values_.find(path);
  return value != values_.end() && value->second == true;
}

void Resolver::resolve_masters() {
  if (is_true("bf16.bf16_optimizer_states") && !is_true("bf16.bf16_master_weights_and_grads")) {
    problem("bf16.bf16_optimizer_states",
            "true needs bf16.bf16_master_weights_and_grads true, too: fp32 masters want fp32 averages");
  }
  for (const auto& [section, key] : {std::pair{"fp16", "fp16.fp16_master_weights_and_grads"},
                                     std::pair{"bf16", "bf16.bf16_master_weights_and_grads"}}) {
    if (!is_true(key)) continue;
    if (!is_true(enabled_key(section))) {
      // Without "enabled" the whole section is told of.
      if (!given(enabled_key(section))) continue;
      notice(key, std::string("has no effect: ") + section + " is not enabled");
    } else {
      notice(key, "small updates are rounded away without fp32 masters; DeepSpeed has it with offload only");
    }
  }
}

void Resolver::resolve_amp() {
  if (!known({"amp.opt_level"})) return;
  const auto level = get<std::string>("amp.opt_level");
  for (const char* key : {"amp.keep_batchnorm_fp32", "amp.master_weights"}) {
    if (!known({key}) || level == "O2" || level == "O3") continue;
    problem(key,
            "found " + shown(key) + ", but opt_level " + level +
                (level == "O1" ? " keeps all parameters in fp32 and casts by operation" : " keeps everything in fp32") +
                ": remove the key, or use opt_level O2 or O3");
  }
  if (known({"amp.loss_scale"}) && level == "O0") {
    notice("amp.loss_scale", "has no effect: opt_level O0 trains in fp32, without loss scaling");
  }
  tell_fp16_averages(level);
  resolve_amp_scale(level);
}

void Resolver::tell_fp16_averages(const std::string& level) {
  if (preset() != "O3" && preset() != "O3_norms") return;
  if (is("optimizer.type", "SGD") || !checked_.selected.contains("optimizer.type")) return;
  // What the user has ruled out by "master_weights": false is no advice.
  std::string advice = "use SGD, O2, or \"master_weights\": true";
  if (known({"amp.master_weights"})) {
    advice = level == "O2" ? "remove \"master_weights\": false, or use SGD"
                           : "use SGD, or O2 without \"master_weights\": false";
  }
  notice("amp.opt_level",
         level + (level == "O2" ? " without masters" : "") +
             " keeps the optimizer's averages in fp16, where squares of gradients below 2.4e-4 are 0 and updates "
             "have no bound: expect the run to diverge; " +
             advice);
}

void Resolver::resolve_amp_scale(const std::string& level) {
  const std::string low = "amp.min_loss_scale";
  const std::string high = "amp.max_loss_scale";
  if (!known({high.c_str()})) return;
  const auto highest = get<double>(high);
  const std::string maximum = high + " " + shown(high) + (given(high) ? "" : " (the default)");
  const std::string scale = "amp.loss_scale";
  if (level != "O0" && known({scale.c_str()}) && values_[scale].is_number() && get<double>(scale) > highest) {
    problem(scale, "found " + shown(scale) + ", above " + maximum + ": lower it or raise that");
    return;
  }
  if (!known({low.c_str()})) return;
  if (get<double>(low) > highest) {
    problem(low, "found " + shown(low) + ", above " + maximum + ": lower it or raise that");
    return;
  }
  const bool is_dynamic = known({scale.c_str()}) ? values_[scale] == "dynamic" : level == "O1" || level == "O2";
  if (!is_dynamic || level == "O0") return;
  const double first = std::min(std::ldexp(1.0, static_cast<int>(apex_loss_scale().initial_scale_power)), highest);
  if (get<double>(low) > first) {
    problem(low, "found " + shown(low) + ", above the first scale, " + number_text(first) + ": lower it");
  }
}

std::string Resolver::preset() const {
  if (is_true("fp16.enabled")) return is_true("fp16.fp16_master_weights_and_grads") ? "fp16_masters" : "fp16";
  if (is_true("bf16.enabled")) {
    if (is_true("bf16.bf16_optimizer_states")) return "bf16_states";
    return is_true("bf16.bf16_master_weights_and_grads") ? "bf16_masters" : "bf16";
  }
  if (is_true("torch_autocast.enabled")) {
    return get<std::string>("torch_autocast.dtype").ends_with("bfloat16") ? "autocast_bf16" : "autocast_fp16";
  }
  if (!is_true("amp.enabled")) return "fp32";
  const auto level = get<std::string>("amp.opt_level");
  if (level == "O0" || level == "O1") return level;
  const bool norms = known({"amp.keep_batchnorm_fp32"}) ? get<bool>("amp.keep_batchnorm_fp32") : level == "O2";
  const bool masters = known({"amp.master_weights"}) ? get<bool>("amp.master_weights") : level == "O2";
  if (masters) return norms ? "O2" : "fp16";
  return norms ? "O3_norms" : "O3";
}

void Resolver::resolve_formats() {
  const std::string sum_key = "data_types.grad_accum_dtype";
  const std::string wire_key = "communication_data_type";
  if (!known({"amp.opt_level", "torch_autocast.dtype"})) return;
  PrecisionSettings settings = {preset(), "", ""};
  const Precision own = precision_preset(settings.preset).precision;
  const std::string training(name_of(own.gradient));
  if (known({wire_key.c_str()})) {
    settings.communication_dtype = get<std::string>(wire_key);
    if (!precision_preset(settings.preset).scales_loss() && settings.communication_dtype == "fp16") {
      notice(wire_key, "fp16 without loss scaling: gradients below 6e-8 become 0, those above 65504 end the run");
    }
  }
  // Sums are kept as they were, or the number of micro-steps would decide anew.
  if (options_.resumed && !given(sum_key) && !checked_.wrong.contains(sum_key)) {
    const std::string& before = options_.resumed->grad_accum_dtype;
    if (before == "fp32" || before == training) values_[sum_key] = before;
  }
  if (known({sum_key.c_str()})) {
    const auto sum = get<std::string>(sum_key);
    if (sum != "fp32" && sum != training) {
      problem(sum_key, "found \"" + sum + "\"; allowed with gradients in " + training + " (precision " +
                           settings.preset + "): \"fp32\"" + (training == "fp32" ? "" : " or \"" + training + "\""));
    }
    settings.grad_accum_dtype = sum;
  }
  if (!known({"gradient_accumulation_steps"})) return;
  const Precision precision = make_precision(settings, get<std::int64_t>("gradient_accumulation_steps"));
  if (!checked_.wrong.contains(sum_key)) values_[sum_key] = name_of(precision.accumulator);
  if (!checked_.wrong.contains(wire_key)) values_[wire_key] = name_of(precision.gradient);
}

void Resolver::set_precision(Settings& settings) const {
  settings.precision = {preset(), get<std::string>("data_types.grad_accum_dtype"),
                        get<std::string>("communication_data_type")};
  LossScaleSettings& scale = settings.loss_scale;
  const PrecisionPreset& row = precision_preset(settings.precision.preset);
  if (!row.scales_loss()) return;
  if (is_true("torch_autocast.enabled")) {
    scale = apex_loss_scale();  // PyTorch's GradScaler counts alike and has no maximum
    scale.max_loss_scale = LossScaleSettings{}.max_loss_scale;
  } else if (is_true("amp.enabled")) {
    scale = apex_loss_scale();
    if (get<std::string>("amp.opt_level") == "O3") scale.loss_scale = 1.0;
    const Json& given = values_.at("amp.loss_scale");
    if (given == "dynamic") scale.loss_scale = 0.0;
    if (given.is_number()) scale.loss_scale = given.get<double>();
    if (known({"amp.min_loss_scale"})) scale.min_loss_scale = get<double>("amp.min_loss_scale");
    scale.max_loss_scale = get<double>("amp.max_loss_scale");
  }
}

}  // namespace zt
