#include "optim/update_gate.h"

namespace zt {

const char* name_of(SkipReason reason) {
  switch (reason) {
    case SkipReason::none: break;
    case SkipReason::gradient_overflow: return "gradient_overflow";
    case SkipReason::loss_not_finite: return "loss_not_finite";
    case SkipReason::loss_spike: return "loss_spike";
    case SkipReason::grad_norm_spike: return "grad_norm_spike";
  }
  return "none";
}

Decision UpdateGate::decide(const StepNumbers& numbers) {
  if (!numbers.loss_is_finite) return loss_not_finite();
  losses_in_a_row_ = 0;
  if (!numbers.gradients_are_finite) return overflow();
  scaler_.update(false);
  if (const auto found = spikes_.check(numbers.loss, numbers.grad_norm)) return spike(*found);
  spikes_.record(numbers.loss, numbers.grad_norm);
  skips_in_a_row_ = 0;
  return {};
}

Decision UpdateGate::loss_not_finite() {
  if (!skips_not_finite_) return {Verdict::fail, SkipReason::loss_not_finite, Failure::unscaled, 1, {}};
  Decision decision = count_skip(SkipReason::loss_not_finite);
  if (++losses_in_a_row_ >= losses_that_end_a_run) {
    decision.verdict = Verdict::fail;
    decision.failure = Failure::losses_in_a_row;
  }
  if (decision.failure != Failure::skips_in_a_row) decision.in_a_row = losses_in_a_row_;
  return decision;
}

Decision UpdateGate::overflow() {
  Decision decision;
  decision.reason = SkipReason::gradient_overflow;
  switch (scaler_.update(true)) {
    case LossScaler::Verdict::retry: decision.verdict = Verdict::retry; return decision;
    case LossScaler::Verdict::at_minimum:
      decision.verdict = Verdict::fail;
      decision.failure = Failure::at_minimum;
      return decision;
    case LossScaler::Verdict::stop:
      if (skips_not_finite_) break;
      decision.verdict = Verdict::fail;
      decision.failure = Failure::unscaled;
      return decision;
    case LossScaler::Verdict::apply:  // not of an overflow
    case LossScaler::Verdict::skip:
      if (!scaler_.dynamic()) break;
      decision.verdict = Verdict::skip;
      return decision;
  }
  return count_skip(SkipReason::gradient_overflow);
}

Decision UpdateGate::spike(const Spike& spike) {
  const SkipReason reason =
      spike.quantity == Spike::Quantity::loss ? SkipReason::loss_spike : SkipReason::grad_norm_spike;
  Decision decision = spikes_.settings().action == SpikeAction::stop
                          ? Decision{Verdict::fail, reason, Failure::spike, 1, {}}
                          : count_skip(reason);
  decision.spike = spike;
  return decision;
}

Decision UpdateGate::count_skip(SkipReason reason) {
  ++skips_in_a_row_;
  if (skips_in_a_row_ < skips_that_end_a_run) return {Verdict::skip, reason, Failure::none, skips_in_a_row_, {}};
  return {Verdict::fail, reason, Failure::skips_in_a_row, skips_in_a_row_, {}};
}

void UpdateGate::set_state(const UpdateGateState& state) {
  scaler_.set_state(state.scaler);
  spikes_.set_state(state.spikes);
  losses_in_a_row_ = state.losses_in_a_row;
  skips_in_a_row_ = state.skips_in_a_row;
}

}  // namespace zt
