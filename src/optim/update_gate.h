// Decides what becomes of a step, from numbers that all ranks have agreed on: is its update made, left out, tried
// again, or does the run end. A pure state machine of the loss scaler, the spike guard and two counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "optim/loss_scaler.h"
#include "optim/spike_guard.h"

namespace zt {

// What is known of a step before its update.
struct StepNumbers {
  bool loss_is_finite = true;  // of every row, before it was multiplied by the loss scale
  bool gradients_are_finite = true;
  double loss = 0.0;       // mean; where it is finite
  double grad_norm = 0.0;  // of the mean gradient, before clipping; where it is finite
};

enum class Verdict : std::uint8_t {
  apply,  // make the update
  skip,   // leave weights, moments and schedule as they are; the batch is used up
  retry,  // run the same batch again: the scale is lower now
  fail,   // as skip, and the run ends
};

enum class SkipReason : std::uint8_t { none, gradient_overflow, loss_not_finite, loss_spike, grad_norm_spike };
inline constexpr std::size_t skip_reason_count = 5;
// "gradient_overflow", ...
const char* name_of(SkipReason reason);

enum class Failure : std::uint8_t {
  none,
  at_minimum,       // gradients overflow, and the loss scale has nothing left to lower
  unscaled,         // a value that is not finite, in a precision that does not skip it
  losses_in_a_row,  // losses that are not finite
  skips_in_a_row,   // nothing but skipped steps, and no scale whose fall could end it
  spike,            // the spike guard is to stop the run
};

struct Decision {
  Verdict verdict = Verdict::apply;
  SkipReason reason = SkipReason::none;
  Failure failure = Failure::none;
  // Steps in a row, this one included, that count towards losses_that_end_a_run (loss_not_finite) or
  // skips_that_end_a_run (the others); 0 for an overflow that a dynamic scale may cure.
  std::int64_t in_a_row = 0;
  std::optional<Spike> spike;  // with loss_spike and grad_norm_spike
};

// What a checkpoint keeps of it.
struct UpdateGateState {
  LossScalerState scaler;
  SpikeGuardState spikes;
  std::int64_t losses_in_a_row = 0, skips_in_a_row = 0;
  bool operator==(const UpdateGateState&) const = default;
};

// The rules, in this order:
//
// A loss that is not finite comes from the forward pass, which knows no loss scale: halving it cannot help, so the
// scaler is not told. The step is skipped, and losses_that_end_a_run such steps in a row end the run.
// Gradients that are not finite with a finite loss are an overflow. With a dynamic scale the scaler decides. With a
// static scale, or with none (bf16), the step is skipped.
// A spike is skipped or ends the run, as its settings say. To the scaler it is a clean step.
//
// Skipped steps without a dynamic scale on its way down (not finite losses, overflows, spikes) are counted until a
// step is applied: skips_that_end_a_run of them in a row end the run, as nothing would change by going on.
class UpdateGate {
 public:
  // Without a scaler's scale: `skips_not_finite` says whether values that are not finite skip a step (bf16 with
  // check_grad_overflow) or end the run at once (fp32). With one they skip.
  UpdateGate(const LossScaler& scaler, bool skips_not_finite, const SpikeGuardSettings& spikes)
      : scaler_(scaler), skips_not_finite_(skips_not_finite), spikes_(spikes) {}

  // Once per attempt.
  Decision decide(const StepNumbers& numbers);

  const LossScaler& scaler() const { return scaler_; }
  UpdateGateState state() const { return {scaler_.state(), spikes_.state(), losses_in_a_row_, skips_in_a_row_}; }
  void set_state(const UpdateGateState& state);

  static constexpr std::int64_t losses_that_end_a_run = 3;
  static constexpr std::int64_t skips_that_end_a_run = 10;

 private:
  Decision loss_not_finite();
  Decision overflow();
  Decision spike(const Spike& spike);
  Decision count_skip(SkipReason reason);

  LossScaler scaler_;
  bool skips_not_finite_;
  SpikeGuard spikes_;
  std::int64_t losses_in_a_row_ = 0;
  std::int64_t skips_in_a_row_ = 0;
};

}  // namespace zt
