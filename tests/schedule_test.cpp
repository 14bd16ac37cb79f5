#include "optim/schedule.h"

#include <cmath>
#include <string>

#include "catch_compat.h"
#include "core/errors.h"
#include "golden_file.h"

using zt::learning_rate;
using zt::SchedulerSettings;

TEST_CASE("every schedule gives the rates of DeepSpeed's own for 100 updates") {
  const zt::golden::GoldenFile golden("schedules");
  REQUIRE(golden.header().at("cases").size() >= 10);
  for (const auto& example : golden.header().at("cases")) {
    const auto name = example.at("name").get<std::string>();
    const auto& parameters = example.at("params");
    SchedulerSettings settings;
    settings.type = example.at("type").get<std::string>();
    settings.warmup_min_lr = parameters.value("warmup_min_lr", settings.warmup_min_lr);
    settings.warmup_max_lr = parameters.value("warmup_max_lr", settings.warmup_max_lr);
    settings.warmup_num_steps = parameters.value("warmup_num_steps", settings.warmup_num_steps);
    settings.total_num_steps = parameters.value("total_num_steps", settings.total_num_steps);
    settings.warmup_type = parameters.value("warmup_type", settings.warmup_type);
    settings.warmup_min_ratio = parameters.value("warmup_min_ratio", settings.warmup_min_ratio);
    settings.cos_min_ratio = parameters.value("cos_min_ratio", settings.cos_min_ratio);
    const auto optimizer_lr = example.at("optimizer_lr").get<double>();
    const auto rates = golden.doubles(name);
    REQUIRE(rates.size() == 100);
    for (std::size_t applied = 0; applied < rates.size(); ++applied) {
      INFO(name << ", update " << applied + 1);
      const double rate = learning_rate(settings, optimizer_lr, static_cast<std::int64_t>(applied));
      CHECK(std::abs(rate - rates[applied]) <= 1e-13 * std::abs(rates[applied]));
    }
  }
}

TEST_CASE("with a minimum of 0 the first two updates have rate 0") {
  SchedulerSettings settings;
  settings.warmup_num_steps = 100;
  for (const char* type : {"WarmupLR", "WarmupDecayLR"}) {
    settings.type = type;
    settings.total_num_steps = 1000;
    CHECK(learning_rate(settings, 3e-4, 0) == 0.0);
    CHECK(learning_rate(settings, 3e-4, 1) == 0.0);
    CHECK(learning_rate(settings, 3e-4, 2) > 0.0);
  }
}

TEST_CASE("the logarithmic warm-up reaches half of the peak after the square root of its steps") {
  SchedulerSettings settings;
  settings.type = "WarmupLR";
  settings.warmup_num_steps = 10000;
  settings.warmup_max_lr = 2.0;
  CHECK(learning_rate(settings, 1.0, 100) == Approx(1.0));    // i + 1 = 100
  CHECK(learning_rate(settings, 1.0, 10001) == Approx(2.0));  // i = n
  CHECK(learning_rate(settings, 1.0, 1000000) == 2.0);
}

TEST_CASE("a decay stays at 0 and a cosine at its floor after the last step") {
  SchedulerSettings settings;
  settings.type = "WarmupDecayLR";
  settings.warmup_num_steps = 10;
  settings.total_num_steps = 50;
  CHECK(learning_rate(settings, 1.0, 51) == 0.0);
  CHECK(learning_rate(settings, 1.0, 5000) == 0.0);
  settings.type = "WarmupCosineLR";
  settings.cos_min_ratio = 0.25;
  CHECK(learning_rate(settings, 2.0, 5000) == Approx(0.5));
}

TEST_CASE("no scheduler means the optimizer's own rate, and unknown names are errors") {
  SchedulerSettings settings;
  CHECK(learning_rate(settings, 3e-4, 0) == 3e-4);
  CHECK(learning_rate(settings, 3e-4, 12345) == 3e-4);
  settings.type = "Cyclic";
  CHECK_THROWS_AS(learning_rate(settings, 3e-4, 0), zt::UserError);
  settings.type = "WarmupLR";
  settings.warmup_type = "quadratic";
  CHECK_THROWS_AS(learning_rate(settings, 3e-4, 5), zt::UserError);
}
