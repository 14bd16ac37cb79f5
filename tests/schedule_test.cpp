#include "optim/schedule.h"

#include <cmath>
#include <map>
#include <string>

#include "catch_compat.h"
#include "core/errors.h"
#include "golden_file.h"
#include "golden_schedule.h"

using zt::scheduled_values;
using zt::SchedulerSettings;

namespace {

double rate(const SchedulerSettings& settings, double optimizer_lr, std::int64_t applied) {
  return scheduled_values(settings, optimizer_lr, applied).learning_rate;
}

// A logarithm or a cosine may differ in its last bit from one C library to the next, all else may not.
void require_same(double ours, double theirs, bool transcendental) {
  if (transcendental) {
    CHECK(std::abs(ours - theirs) <= 1e-15 * std::abs(theirs));
  } else {
    CHECK(ours == theirs);
  }
}

}  // namespace

TEST_CASE("every schedule gives the rates and betas of DeepSpeed's own for 1,000 updates") {
  const zt::golden::GoldenFile golden("schedules");
  REQUIRE(golden.header().at("cases").size() >= 30);
  std::map<std::string, int> cases_of_type;
  for (const auto& example : golden.header().at("cases")) {
    const auto name = example.at("name").get<std::string>();
    const auto type = example.at("type").get<std::string>();
    ++cases_of_type[type];
    SchedulerSettings settings = zt::golden::schedule_of(type, example.at("params"));
    const auto optimizer_lr = example.at("optimizer_lr").get<double>();
    if (type == "WarmupLR" && !example.at("params").contains("warmup_max_lr")) settings.warmup_max_lr = optimizer_lr;
    // What the config's rules do for an optimizer that has no momentum.
    if (example.at("betas").is_null()) settings.cycle_momentum = false;
    const bool transcendental =
        type == "WarmupCosineLR" || (type.starts_with("Warmup") && settings.warmup_type == "log");
    const auto rates = golden.doubles(name);
    const bool moves_betas = golden.has(name + "/beta1");
    const auto beta1 = moves_betas ? golden.doubles(name + "/beta1") : std::vector<double>();
    const auto beta2 = moves_betas ? golden.doubles(name + "/beta2") : std::vector<double>();
    REQUIRE(rates.size() == 1000);
    for (std::size_t applied = 0; applied < rates.size(); ++applied) {
      INFO(name << ", update " << applied + 1);
      const zt::ScheduledValues values = scheduled_values(settings, optimizer_lr, static_cast<std::int64_t>(applied));
      require_same(values.learning_rate, rates[applied], transcendental);
      CHECK(values.momentum.has_value() == moves_betas);
      CHECK(values.beta2.has_value() == moves_betas);
      if (!moves_betas) continue;
      CHECK(values.momentum.value_or(-1.0) == beta1[applied]);
      CHECK(values.beta2.value_or(-1.0) == beta2[applied]);
    }
  }
  for (const char* type : {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "OneCycle", "LRRangeTest"}) {
    INFO(type);
    CHECK(cases_of_type[type] >= 3);
  }
}

TEST_CASE("with a minimum of 0 the first two updates have rate 0") {
  SchedulerSettings settings;
  settings.warmup_num_steps = 100;
  for (const char* type : {"WarmupLR", "WarmupDecayLR"}) {
    settings.type = type;
    settings.total_num_steps = 1000;
    CHECK(rate(settings, 3e-4, 0) == 0.0);
    CHECK(rate(settings, 3e-4, 1) == 0.0);
    CHECK(rate(settings, 3e-4, 2) > 0.0);
  }
}

TEST_CASE("the logarithmic warm-up reaches half of the peak after the square root of its steps") {
  SchedulerSettings settings;
  settings.type = "WarmupLR";
  settings.warmup_num_steps = 10000;
  settings.warmup_max_lr = 2.0;
  CHECK(rate(settings, 1.0, 100) == Approx(1.0));    // i + 1 = 100
  CHECK(rate(settings, 1.0, 10001) == Approx(2.0));  // i = n
  CHECK(rate(settings, 1.0, 1000000) == 2.0);
}

TEST_CASE("a decay stays at 0 and a cosine at its floor after the last step") {
  SchedulerSettings settings;
  settings.type = "WarmupDecayLR";
  settings.warmup_num_steps = 10;
  settings.total_num_steps = 50;
  CHECK(rate(settings, 1.0, 51) == 0.0);
  CHECK(rate(settings, 1.0, 5000) == 0.0);
  settings.type = "WarmupCosineLR";
  settings.cos_min_ratio = 0.25;
  CHECK(rate(settings, 2.0, 5000) == Approx(0.5));
}

TEST_CASE("a cycle has its highest rate and lowest momentum together, and its lowest rate at both ends") {
  SchedulerSettings settings;
  settings.type = "OneCycle";
  settings.cycle_min_lr = 0.25;
  settings.cycle_max_lr = 1.5;
  settings.cycle_first_step_size = 10;
  settings.cycle_second_step_size = 30;
  CHECK(rate(settings, 9.0, 0) == 0.25);
  CHECK(rate(settings, 9.0, 10) == 1.5);
  CHECK(rate(settings, 9.0, 40) == 0.25);
  CHECK(rate(settings, 9.0, 4000) == 0.25);
  CHECK(zt::cycled_momentum(settings, 10) == Approx(0.8));
  CHECK(zt::cycled_momentum(settings, 40) == 0.9);
  CHECK(zt::cycled_momentum(settings, 0) == 0.8);  // DeepSpeed's first update has the lowest, as it is constructed so
  CHECK(zt::cycled_momentum(settings, 1) == Approx(0.89));
}

TEST_CASE("no scheduler means the optimizer's own values, and unknown names are errors") {
  SchedulerSettings settings;
  CHECK(rate(settings, 3e-4, 0) == 3e-4);
  CHECK(rate(settings, 3e-4, 12345) == 3e-4);
  CHECK(!scheduled_values(settings, 3e-4, 7).momentum.has_value());
  settings.type = "Cyclic";
  CHECK_THROWS_AS(scheduled_values(settings, 3e-4, 0), zt::UserError);
  settings.type = "WarmupLR";
  settings.warmup_type = "quadratic";
  CHECK_THROWS_AS(scheduled_values(settings, 3e-4, 5), zt::UserError);
}
