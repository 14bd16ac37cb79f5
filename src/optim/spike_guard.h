// Watches loss and gradient norm for jumps: a pure state machine. Every rank runs its own copy on the same agreed
// numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/settings.h"

namespace zt {

// What a checkpoint keeps of it: the values of the last applied steps, at most a window, oldest first.
struct SpikeGuardState {
  std::vector<double> losses, grad_norms;
  bool operator==(const SpikeGuardState&) const = default;
};

// A value that left its running range.
struct Spike {
  enum class Quantity : std::uint8_t { loss, grad_norm };
  Quantity quantity = Quantity::loss;
  double value = 0.0;
  double mean = 0.0, deviation = 0.0;  // of the window
  double limit = 0.0;                  // mean + deviations * deviation
};

// The running range of a value goes up to its mean plus `deviations` standard deviations (of the population), both
// taken over the last `window` applied steps; it has no lower end. The loss is looked at first, then the norm. It says
// nothing before the window is full. A deviation of less than smallest_relative_deviation of the mean counts
// as that, so that a curve without noise is not taken at its last digit.
//
// Steps that are not applied, spikes among them, do not enter the window: one outlier does not widen the range for
// the next. A level that has changed for good is therefore a spike in every step; who skips must count (UpdateGate).
class SpikeGuard {
 public:
  explicit SpikeGuard(const SpikeGuardSettings& settings) : settings_(settings) {}

  // Both values finite. Changes nothing.
  std::optional<Spike> check(double loss, double grad_norm) const;
  // The step was applied.
  void record(double loss, double grad_norm);

  const SpikeGuardSettings& settings() const { return settings_; }
  const SpikeGuardState& state() const { return state_; }
  // Of a longer window the newest values are kept. RunError if the two series differ in length.
  void set_state(SpikeGuardState state);

  static constexpr double smallest_relative_deviation = 0.01;

 private:
  std::optional<Spike> check(Spike::Quantity quantity, const std::vector<double>& past, double value) const;

  SpikeGuardSettings settings_;
  SpikeGuardState state_;
};

}  // namespace zt
