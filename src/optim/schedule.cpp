// The operations stand in the order in which DeepSpeed does them, so that the results agree to the last bit as far as
// the C library's logarithm and cosine do.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"

namespace zt {
namespace {

// ---- WarmupLR, WarmupDecayLR, WarmupCosineLR. i is DeepSpeed's counter, from -1.

// DeepSpeed never warms up over fewer than two steps: ln(1) would divide.
double warmup_length(const SchedulerSettings& settings) {
  return static_cast<double>(std::max<std::int64_t>(2, settings.warmup_num_steps));
}

// 0 at i = 0, 1 at i = n.
double warmup_fraction(const SchedulerSettings& settings, double i, double n) {
  if (settings.warmup_type == "linear") return i / n;
  if (settings.warmup_type == "log") return 1.0 / std::log(n) * std::log(i + 1.0);
  throw UserError("scheduler.params.warmup_type: \"" + settings.warmup_type + "\" is neither \"log\" nor \"linear\"");
}

double decay_length(const SchedulerSettings& settings, double n) {
  return std::max(1.0, static_cast<double>(settings.total_num_steps) - n);
}

double warmup_then(const SchedulerSettings& settings, double i, double n, double gamma_after_warmup) {
  if (i < 0.0) return settings.warmup_min_lr;
  const double gamma = i < n ? warmup_fraction(settings, i, n) : gamma_after_warmup;
  return settings.warmup_min_lr + (settings.warmup_max_lr - settings.warmup_min_lr) * gamma;
}

double cosine_ratio(const SchedulerSettings& settings, double i, double n) {
  if (i < 0.0) return 0.0;  // even where warmup_min_ratio is above 0
  if (i < n) {
    return settings.warmup_min_ratio + warmup_fraction(settings, i, n) * (1.0 - settings.warmup_min_ratio);
  }
  const double progress = std::min(1.0, (i - n + 1.0) / decay_length(settings, n));
  const double cosine = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return std::max(0.0, settings.cos_min_ratio + (1.0 - settings.cos_min_ratio) * cosine);
}

// ---- LRRangeTest (Smith 2018, arXiv 1803.09820).

double range_test_rate(const SchedulerSettings& settings, double applied) {
  const double intervals = applied / static_cast<double>(settings.lr_range_test_step_size);
  const double increase = settings.lr_range_test_staircase ? std::floor(intervals) : intervals;
  return settings.lr_range_test_min_lr * (1.0 + settings.lr_range_test_step_rate * increase);
}

// ---- OneCycle (the same paper). Up over the first half, down over the second, then decay.

double cycle_length(const SchedulerSettings& settings) {
  return static_cast<double>(settings.cycle_first_step_size) + static_cast<double>(settings.cycle_second_step_size);
}

// 0 at both ends of the cycle, 1 at its peak; with stairs rounded down to multiples of 1 / count.
double cycle_height(const SchedulerSettings& settings, double applied) {
  const auto first = static_cast<double>(settings.cycle_first_step_size);
  const auto second = static_cast<double>(settings.cycle_second_step_size);
  const double total = cycle_length(settings);
  const double peak = first / total;
  const double place = 1.0 + applied / total - std::floor(1.0 + applied / total);
  const bool rising = place <= peak;
  const auto stairs =
      static_cast<double>(rising ? settings.cycle_first_stair_count : settings.cycle_second_stair_count);
  if (stairs == 0.0) return rising ? place / peak : (place - 1.0) / (peak - 1.0);
  // From whole steps: the share above may be a hair below a stair.
  const double step = std::fmod(applied, total);
  const double stair = step <= first ? step * stairs / first : (total - step) * stairs / second;
  return std::floor(stair) / stairs;
}

// The last step of the cycle, i = T - 1, is at its end and has the height of its start.
bool within_cycle(const SchedulerSettings& settings, double applied) { return applied - 1.0 < cycle_length(settings); }

// After the cycle: how often decay_step_size steps went by since.
double decay_intervals(const SchedulerSettings& settings, double applied) {
  if (settings.decay_step_size == 0) return 0.0;
  return (applied - cycle_length(settings)) / static_cast<double>(settings.decay_step_size);
}

double cycled_rate(const SchedulerSettings& settings, double applied) {
  const double low = settings.cycle_min_lr;
  if (within_cycle(settings, applied)) {
    return low + (settings.cycle_max_lr - low) * cycle_height(settings, applied);
  }
  return low / (1.0 + settings.decay_lr_rate * decay_intervals(settings, applied));
}

}  // namespace

double cycled_momentum(const SchedulerSettings& settings, std::int64_t applied_steps_so_far) {
  // DeepSpeed starts at the other end of the cycle than where the second update goes on.
  if (applied_steps_so_far == 0) return settings.cycle_min_mom;
  const auto applied = static_cast<double>(applied_steps_so_far);
  const double high = settings.cycle_max_mom;
  if (within_cycle(settings, applied)) {
    return high - (high - settings.cycle_min_mom) * cycle_height(settings, applied);
  }
  return high * (1.0 + settings.decay_mom_rate * decay_intervals(settings, applied));
}

ScheduledValues scheduled_values(const SchedulerSettings& settings, double optimizer_lr,
                                 std::int64_t applied_steps_so_far) {
  ScheduledValues values{.learning_rate = optimizer_lr};
  if (settings.type.empty()) return values;
  const auto applied = static_cast<double>(applied_steps_so_far);
  const double i = applied - 1.0;
  const double n = warmup_length(settings);
  if (settings.type == "WarmupLR") {
    values.learning_rate = warmup_then(settings, i, n, 1.0);
  } else if (settings.type == "WarmupDecayLR") {
    const double left = static_cast<double>(settings.total_num_steps) - i;
    values.learning_rate = warmup_then(settings, i, n, std::max(0.0, left / decay_length(settings, n)));
  } else if (settings.type == "WarmupCosineLR") {
    values.learning_rate = optimizer_lr * cosine_ratio(settings, i, n);
  } else if (settings.type == "LRRangeTest") {
    values.learning_rate = range_test_rate(settings, applied);
  } else if (settings.type == "OneCycle") {
    constexpr double beta2_of_cycle = 0.99;  // DeepSpeed has no key for it
    values.learning_rate = cycled_rate(settings, applied);
    if (settings.cycle_momentum) {
      values.momentum = cycled_momentum(settings, applied_steps_so_far);
      values.beta2 = beta2_of_cycle;
    }
  } else {
    throw UserError("scheduler.type: \"" + settings.type +
                    "\" is not known; use WarmupLR, WarmupDecayLR, WarmupCosineLR, OneCycle or LRRangeTest");
  }
  return values;
}

}  // namespace zt
