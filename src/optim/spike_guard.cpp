#include "optim/spike_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/errors.h"

namespace zt {

std::optional<Spike> SpikeGuard::check(double loss, double grad_norm) const {
  if (settings_.action == SpikeAction::off) return std::nullopt;
  if (const auto spike = check(Spike::Quantity::loss, state_.losses, loss)) return spike;
  return check(Spike::Quantity::grad_norm, state_.grad_norms, grad_norm);
}

std::optional<Spike> SpikeGuard::check(Spike::Quantity quantity, const std::vector<double>& past, double value) const {
  if (static_cast<std::int64_t>(past.size()) < settings_.window) return std::nullopt;
  // Two passes, oldest value first: the same sums on every rank.
  const auto count = static_cast<double>(past.size());
  double sum = 0.0;
  for (const double one : past) sum += one;
  const double mean = sum / count;
  double squares = 0.0;
  for (const double one : past) squares += (one - mean) * (one - mean);
  const double deviation = std::max(std::sqrt(squares / count), smallest_relative_deviation * std::abs(mean));
  const double limit = mean + settings_.deviations * deviation;
  if (!(value > limit)) return std::nullopt;
  return Spike{quantity, value, mean, deviation, limit};
}

namespace {

void push(std::vector<double>& values, double value, std::int64_t window) {
  if (static_cast<std::int64_t>(values.size()) >= window) values.erase(values.begin());
  values.push_back(value);
}

void keep_newest(std::vector<double>& values, std::int64_t window) {
  const auto surplus = static_cast<std::ptrdiff_t>(values.size()) - static_cast<std::ptrdiff_t>(window);
  if (surplus > 0) values.erase(values.begin(), values.begin() + surplus);
}

}  // namespace

void SpikeGuard::record(double loss, double grad_norm) {
  if (settings_.action == SpikeAction::off) return;
  push(state_.losses, loss, settings_.window);
  push(state_.grad_norms, grad_norm, settings_.window);
}

void SpikeGuard::set_state(SpikeGuardState state) {
  if (state.losses.size() != state.grad_norms.size()) {
    throw RunError("the saved state of the spike guard has " + std::to_string(state.losses.size()) + " losses and " +
                   std::to_string(state.grad_norms.size()) + " gradient norms");
  }
  state_ = std::move(state);
  keep_newest(state_.losses, settings_.window);
  keep_newest(state_.grad_norms, settings_.window);
}

}  // namespace zt
