// Schedules: pure functions of how many updates were applied, as DeepSpeed's schedulers define them.
#pragma once

#include <cstdint>
#include <optional>

#include "config/settings.h"

namespace zt {

// What an update uses in place of the optimizer's own values. Without a value the optimizer's own stays.
struct ScheduledValues {
  double learning_rate = 0.0;
  std::optional<double> momentum{};  // Adam's first beta, or SGD's momentum
  std::optional<double> beta2{};     // Adam's second
};

// What the next update uses when `applied_steps_so_far` updates went before it. Skipped steps do not count.
// `optimizer_lr` is the optimizer's own rate: the whole answer without a scheduler, the peak of WarmupCosineLR.
//
// DeepSpeed's schedulers count from -1: their value at construction serves the first update, and update number k
// (from 1) has the values of i = k - 2. So a warm-up from 0 gives the first two updates a rate of 0.
//
// UserError for a type or a kind of warm-up that does not exist.
ScheduledValues scheduled_values(const SchedulerSettings& settings, double optimizer_lr,
                                 std::int64_t applied_steps_so_far);

// OneCycle's momentum in the update after `applied_steps_so_far` others. With decay_mom_rate it grows past the cycle
// without a bound; the config's rules hold it below 1 within a run.
double cycled_momentum(const SchedulerSettings& settings, std::int64_t applied_steps_so_far);

}  // namespace zt
