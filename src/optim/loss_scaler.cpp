#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/errors.h"

namespace zt {
namespace {

void require_range(const char* key, double value, double scale) {
  if (scale >= LossScaler::smallest_scale && scale <= LossScaler::largest_scale) return;  // false for NaN
  std::ostringstream message;
  message << key << ": " << value << " is outside what fp32 holds together with its reciprocal; "
          << "scales from 2^-126 to 2^126 are possible";
  throw UserError(message.str());
}

}  // namespace

LossScaler::LossScaler(const LossScaleSettings& settings)
    : mode_(settings.loss_scale == 0.0 ? Mode::dynamic : Mode::fixed),
      minimum_(settings.min_loss_scale),
      window_(settings.loss_scale_window),
      hysteresis_(settings.hysteresis),
      consecutive_hysteresis_(settings.consecutive_hysteresis) {
  state_.hysteresis = hysteresis_;
  if (mode_ == Mode::fixed) {
    require_range("fp16.loss_scale", settings.loss_scale, settings.loss_scale);
    state_.scale = settings.loss_scale;
    return;
  }
  const double power = static_cast<double>(settings.initial_scale_power);
  state_.scale = std::exp2(power);
  require_range("fp16.initial_scale_power", power, state_.scale);
  require_range("fp16.min_loss_scale", minimum_, minimum_);
  if (window_ < 1) {
    throw UserError("fp16.loss_scale_window: " + std::to_string(window_) + " steps; it must be 1 or more");
  }
}

LossScaler LossScaler::none() { return {}; }

LossScaler::Verdict LossScaler::update(bool overflow) {
  if (mode_ == Mode::none) {
    if (overflow) return Verdict::stop;
    ++state_.iteration;
    return Verdict::apply;
  }
  if (overflow) {
    if (mode_ == Mode::dynamic) {
      // A configured hysteresis of 1 (or less) never has more than one overflow to give.
      if (state_.hysteresis > 1 && hysteresis_ > 1) {
        --state_.hysteresis;
      } else {
        if (state_.scale == minimum_) return Verdict::at_minimum;
        state_.scale = std::max(state_.scale / 2.0, minimum_);
      }
    }
    state_.last_overflow = state_.iteration++;
    return Verdict::skip;
  }
  if (mode_ == Mode::dynamic) {
    if (consecutive_hysteresis_) state_.hysteresis = hysteresis_;
    const std::int64_t clean_before = state_.iteration - state_.last_overflow - 1;
    if (clean_before > 0 && clean_before % window_ == 0) {
      state_.hysteresis = hysteresis_;
      if (state_.scale * 2.0 <= largest_scale) state_.scale *= 2.0;
    }
  }
  ++state_.iteration;
  return Verdict::apply;
}

void LossScaler::set_state(const LossScalerState& state) {
  const double configured = state_.scale;
  state_ = state;
  if (mode_ != Mode::dynamic) {
    state_.scale = configured;
    return;
  }
  if (!(state.scale >= smallest_scale && state.scale <= largest_scale) || state.last_overflow >= state.iteration ||
      state.last_overflow < -1) {
    throw RunError("the saved state of the loss scaler is not one that a run can have (scale " +
                   std::to_string(state.scale) + ", iteration " + std::to_string(state.iteration) + ", last overflow " +
                   std::to_string(state.last_overflow) + ")");
  }
}

}  // namespace zt
