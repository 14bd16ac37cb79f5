// The schedule of a golden file's JSON, with DeepSpeed's names and defaults.
#pragma once

#include <string>

#include "config/settings.h"
#include "core/json.h"

namespace zt::golden {

inline SchedulerSettings schedule_of(const std::string& type, const nlohmann::json& params) {
  SchedulerSettings s;
  s.type = type;
  const auto take = [&](const char* name, auto& value) { value = params.value(name, value); };
  take("warmup_min_lr", s.warmup_min_lr);
  take("warmup_max_lr", s.warmup_max_lr);
  take("warmup_num_steps", s.warmup_num_steps);
  take("total_num_steps", s.total_num_steps);
  take("warmup_type", s.warmup_type);
  take("warmup_min_ratio", s.warmup_min_ratio);
  take("cos_min_ratio", s.cos_min_ratio);
  take("cycle_min_lr", s.cycle_min_lr);
  take("cycle_max_lr", s.cycle_max_lr);
  take("decay_lr_rate", s.decay_lr_rate);
  take("cycle_first_step_size", s.cycle_first_step_size);
  s.cycle_second_step_size = params.value("cycle_second_step_size", s.cycle_first_step_size);
  take("cycle_first_stair_count", s.cycle_first_stair_count);
  s.cycle_second_stair_count = params.value("cycle_second_stair_count", s.cycle_first_stair_count);
  take("decay_step_size", s.decay_step_size);
  take("cycle_momentum", s.cycle_momentum);
  take("cycle_min_mom", s.cycle_min_mom);
  take("cycle_max_mom", s.cycle_max_mom);
  take("decay_mom_rate", s.decay_mom_rate);
  take("lr_range_test_min_lr", s.lr_range_test_min_lr);
  take("lr_range_test_step_size", s.lr_range_test_step_size);
  take("lr_range_test_step_rate", s.lr_range_test_step_rate);
  take("lr_range_test_staircase", s.lr_range_test_staircase);
  return s;
}

}  // namespace zt::golden
