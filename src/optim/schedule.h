// Learning-rate schedules: pure functions of how many updates were applied, as DeepSpeed's schedulers define them.
#pragma once

#include <cstdint>

#include "config/settings.h"

namespace zt {

// The rate that the next update uses when `applied_steps_so_far` updates went before it. Skipped steps do not count.
// `optimizer_lr` is the optimizer's own rate: the whole answer without a scheduler, the peak of WarmupCosineLR.
//
// DeepSpeed's schedulers count from -1: their value at construction serves the first update, and update number k
// (from 1) has the rate of i = k - 2. So with a minimum of 0 the first two updates have rate 0.
double learning_rate(const SchedulerSettings& settings, double optimizer_lr, std::int64_t applied_steps_so_far);

}  // namespace zt
