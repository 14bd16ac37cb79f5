#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/errors.h"

namespace zt {
namespace {

void require_range(const std::string& key, double value, double scale) {
  if (scale >= LossScaler::smallest_scale && scale <= LossScaler::largest_scale) return;  // false for NaN
  std::ostringstream message;
  message << key << ": " << value << " is outside what fp32 holds together with its reciprocal; "
          << "scales from 2^-126 to 2^126 are possible";
  throw UserError(message.str());
}

}  // namespace

LossScaler::LossScaler(const LossScaleSettings& settings)
    : mode_(settings.loss_scale == 0.0 ? Mode::dynamic : Mode::fixed),
      rule_(settings.rule),
      minimum_(settings.min_loss_scale == 0.0 ? smallest_scale : settings.min_loss_scale),
      maximum_(settings.max_loss_scale),
      window_(settings.loss_scale_window),
      hysteresis_(settings.rule == LossScaleRule::apex ? 1 : std::max<std::int64_t>(1, settings.hysteresis)),
      consecutive_hysteresis_(settings.consecutive_hysteresis),
      retry_(settings.on_overflow == OnOverflow::retry) {
  const std::string section = rule_ == LossScaleRule::apex ? "amp." : "fp16.";
  state_.hysteresis = hysteresis_;
  if (mode_ == Mode::fixed) {
    require_range(section + "loss_scale", settings.loss_scale, settings.loss_scale);
    if (retry_) {
      throw UserError(section + "on_overflow: \"retry\" lowers the scale and runs the batch again, but " + section +
                      "loss_scale makes it static: use \"skip\", or loss_scale 0 for a dynamic one");
    }
    state_.scale = settings.loss_scale;
    return;
  }
  const double power = static_cast<double>(settings.initial_scale_power);
  require_range(section + "initial_scale_power", power, std::exp2(power));
  require_range(section + "min_loss_scale", settings.min_loss_scale, minimum_);
  require_range(section + "max_loss_scale", maximum_, maximum_);
  if (window_ < 1) {
    throw UserError(section + "loss_scale_window: " + std::to_string(window_) + " steps; it must be 1 or more");
  }
  state_.scale = std::min(std::exp2(power), maximum_);
}

LossScaler LossScaler::none() { return {}; }

LossScaler::Verdict LossScaler::update(bool overflow) {
  if (overflow) return mode_ == Mode::none ? Verdict::stop : back_off();
  count_clean_step();
  return Verdict::apply;
}

LossScaler::Verdict LossScaler::back_off() {
  if (mode_ == Mode::dynamic) {
    if (state_.hysteresis > 1 && !retry_) {
      --state_.hysteresis;
    } else {
      // From below the minimum an overflow raises the scale to it (DeepSpeed's max); a retry cannot want that.
      if (retry_ ? state_.scale <= minimum_ : state_.scale == minimum_) return Verdict::at_minimum;
      state_.scale = std::max(state_.scale / 2.0, minimum_);
    }
  }
  state_.clean_steps = 0;
  return retry_ ? Verdict::retry : Verdict::skip;
}

void LossScaler::count_clean_step() {
  const std::int64_t clean_before = state_.clean_steps++;
  if (mode_ != Mode::dynamic) return;
  if (consecutive_hysteresis_) state_.hysteresis = hysteresis_;
  // DeepSpeed counts the clean steps before this one, apex this one too.
  const bool grows =
      rule_ == LossScaleRule::apex ? state_.clean_steps >= window_ : clean_before > 0 && clean_before % window_ == 0;
  if (!grows) return;
  state_.hysteresis = hysteresis_;
  if (state_.scale < maximum_) state_.scale = std::min(state_.scale * 2.0, maximum_);
  if (rule_ == LossScaleRule::apex) state_.clean_steps = 0;
}

void LossScaler::set_state(const LossScalerState& state) {
  const bool dynamic = mode_ == Mode::dynamic;
  if (dynamic && (!(state.scale >= smallest_scale && state.scale <= largest_scale) || state.clean_steps < 0 ||
                  state.hysteresis < 1)) {
    throw RunError("the saved state of the loss scaler is not one that a run can have (scale " +
                   std::to_string(state.scale) + ", clean steps " + std::to_string(state.clean_steps) +
                   ", hysteresis " + std::to_string(state.hysteresis) + ")");
  }
  const double configured = state_.scale;
  state_ = state;
  if (!dynamic) state_.scale = configured;
}

}  // namespace zt
