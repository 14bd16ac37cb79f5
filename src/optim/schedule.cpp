#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.h"

namespace zt {
namespace {

// DeepSpeed never warms up over fewer than two steps: ln(1) would divide.
double warmup_length(const SchedulerSettings& settings) {
  return static_cast<double>(std::max<std::int64_t>(2, settings.warmup_num_steps));
}

// 0 at i = 0, 1 at i = n.
double warmup_fraction(const SchedulerSettings& settings, double i, double n) {
  if (settings.warmup_type == "linear") return i / n;
  if (settings.warmup_type == "log") return std::log(i + 1.0) / std::log(n);
  throw UserError("scheduler.params.warmup_type: \"" + settings.warmup_type + "\" is neither \"log\" nor \"linear\"");
}

double decay_length(const SchedulerSettings& settings, double n) {
  return std::max(1.0, static_cast<double>(settings.total_num_steps) - n);
}

double warmup_then(const SchedulerSettings& settings, double i, double n, double gamma_after_warmup) {
  double gamma = gamma_after_warmup;
  if (i < 0.0) {
    gamma = 0.0;
  } else if (i < n) {
    gamma = warmup_fraction(settings, i, n);
  }
  return settings.warmup_min_lr + (settings.warmup_max_lr - settings.warmup_min_lr) * gamma;
}

double cosine_ratio(const SchedulerSettings& settings, double i, double n) {
  if (i < 0.0) return 0.0;  // even where warmup_min_ratio is above 0
  if (i < n) {
    return settings.warmup_min_ratio + (1.0 - settings.warmup_min_ratio) * warmup_fraction(settings, i, n);
  }
  const double progress = std::min(1.0, (i - n + 1.0) / decay_length(settings, n));
  const double cosine = (1.0 + std::cos(std::numbers::pi * progress)) / 2.0;
  return std::max(0.0, settings.cos_min_ratio + (1.0 - settings.cos_min_ratio) * cosine);
}

}  // namespace

double learning_rate(const SchedulerSettings& settings, double optimizer_lr, std::int64_t applied_steps_so_far) {
  if (settings.type.empty()) return optimizer_lr;
  const double i = static_cast<double>(applied_steps_so_far - 1);
  const double n = warmup_length(settings);
  if (settings.type == "WarmupLR") return warmup_then(settings, i, n, 1.0);
  if (settings.type == "WarmupDecayLR") {
    const double left = static_cast<double>(settings.total_num_steps) - i;
    return warmup_then(settings, i, n, std::max(0.0, left / decay_length(settings, n)));
  }
  if (settings.type == "WarmupCosineLR") return optimizer_lr * cosine_ratio(settings, i, n);
  throw UserError("scheduler.type: \"" + settings.type +
                  "\" is not known; use WarmupLR, WarmupDecayLR or WarmupCosineLR");
}

}  // namespace zt
