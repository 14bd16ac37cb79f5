// Long sequences of loss scales beside DeepSpeed's DynamicLossScaler, PyTorch's GradScaler and apex's rule
// (tests/golden/loss_scales.golden; scripts/golden/loss_scales.py says how it was made).
#include <cmath>
#include <set>
#include <string>

#include "catch_compat.h"
#include "core/json.h"
#include "golden_file.h"
#include "optim/loss_scaler.h"

using zt::LossScaler;
using Verdict = zt::LossScaler::Verdict;

namespace {

zt::LossScaleSettings settings_of(const nlohmann::json& entry) {
  const nlohmann::json& from = entry.at("settings");
  zt::LossScaleSettings settings;
  settings.rule = entry.at("rule") == "apex" ? zt::LossScaleRule::apex : zt::LossScaleRule::deepspeed;
  settings.initial_scale_power = from.at("initial_scale_power");
  settings.loss_scale_window = from.at("loss_scale_window");
  settings.hysteresis = from.at("hysteresis");
  settings.consecutive_hysteresis = from.at("consecutive_hysteresis");
  settings.min_loss_scale = from.at("min_loss_scale");
  settings.max_loss_scale = from.at("max_loss_scale");
  return settings;
}

// How many steps of the sequence agree.
std::size_t steps_that_agree(LossScaler& scaler, const std::vector<std::int32_t>& overflows,
                             const std::vector<double>& scales, bool ends) {
  for (std::size_t step = 0; step < scales.size(); ++step) {
    const bool overflow = overflows[step] != 0;
    const Verdict expected = !overflow                           ? Verdict::apply
                             : ends && step + 1 == scales.size() ? Verdict::at_minimum
                                                                 : Verdict::skip;
    if (scaler.update(overflow) != expected || scaler.scale() != scales[step]) return step;
  }
  return scales.size();
}

}  // namespace

TEST_CASE("the scaler follows DeepSpeed's, PyTorch's and apex's over long sequences of overflows") {
  const zt::golden::GoldenFile file("loss_scales");
  std::set<std::string> origins;
  int ended = 0;
  for (const auto& entry : file.header().at("cases")) {
    const std::string name = entry.at("name");
    INFO(name << ", by " << entry.at("origin"));
    origins.insert(entry.at("origin").get<std::string>());
    const std::vector<std::int32_t> overflows = file.integers(name + "/overflow");
    const std::vector<double> scales = file.doubles(name + "/scale");
    REQUIRE(scales.size() == overflows.size());
    REQUIRE(scales.size() > 50);
    LossScaler scaler{settings_of(entry)};
    CHECK(steps_that_agree(scaler, overflows, scales, entry.at("ends")) == scales.size());
    if (entry.at("ends").get<bool>()) ++ended;
  }
  CHECK(origins == std::set<std::string>{"DeepSpeed", "PyTorch", "apex"});
  CHECK(ended >= 3);
}

TEST_CASE("the two rules are not the same: each fails on the other's sequence") {
  const zt::golden::GoldenFile file("loss_scales");
  for (const std::string name : {"hysteresis 1, window 3", "GradScaler, window 5"}) {
    for (const auto& entry : file.header().at("cases")) {
      if (entry.at("name") != name) continue;
      zt::LossScaleSettings settings = settings_of(entry);
      settings.rule = settings.rule == zt::LossScaleRule::apex ? zt::LossScaleRule::deepspeed : zt::LossScaleRule::apex;
      LossScaler scaler{settings};
      const std::vector<double> scales = file.doubles(name + "/scale");
      CHECK(steps_that_agree(scaler, file.integers(name + "/overflow"), scales, false) < scales.size());
    }
  }
}
