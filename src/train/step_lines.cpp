#include "train/step_lines.h"

#include <cmath>

#include "train/words.h"

namespace zt {

namespace {

std::string step_name(std::int64_t step) { return "step " + std::to_string(step); }

std::string in_a_row(std::int64_t count, std::int64_t most) {
  return std::to_string(count) + " in a row, " + std::to_string(most) + " end the run";
}

// "the loss 9.1 is above its running range, 4.12 + 6 x 0.1 = 4.72"
std::string spike_text(const Spike& spike) {
  const std::string quantity = spike.quantity == Spike::Quantity::loss ? "the loss" : "the gradient norm";
  const double deviations = (spike.limit - spike.mean) / spike.deviation;
  return quantity + " " + significant(spike.value, 4) + " is above its running range, " + significant(spike.mean, 4) +
         " + " + significant(deviations, 3) + " x " + significant(spike.deviation, 3) + " = " +
         significant(spike.limit, 4);
}

std::string overflow_text(const StepOutcome& outcome, const LossScaler& scaler) {
  const Decision& decision = outcome.decision;
  const std::string count = in_a_row(decision.in_a_row, UpdateGate::skips_that_end_a_run);
  if (!scaler.scales()) return "gradients are not finite, and there is no loss scale to lower; " + count;
  const std::string overflowed = "gradients overflowed at loss scale " + count_exactly(outcome.scale);
  if (!scaler.dynamic()) return overflowed + ", which is static; " + count;
  if (scaler.scale() == outcome.scale) return overflowed + ", kept once more (hysteresis)";
  return overflowed + ", the next step uses " + count_exactly(scaler.scale());
}

std::string why_skipped(const StepOutcome& outcome, const LossScaler& scaler) {
  const Decision& decision = outcome.decision;
  switch (decision.reason) {
    case SkipReason::none: break;
    case SkipReason::gradient_overflow: return overflow_text(outcome, scaler);
    case SkipReason::loss_not_finite:
      return "the loss is not finite" +
             (scaler.scales()
                  ? " before scaling, which no loss scale can help: it stays " + count_exactly(scaler.scale())
                  : std::string()) +
             "; " + in_a_row(decision.in_a_row, UpdateGate::losses_that_end_a_run);
    case SkipReason::loss_spike:
    case SkipReason::grad_norm_spike:
      return spike_text(*decision.spike) + "; " + in_a_row(decision.in_a_row, UpdateGate::skips_that_end_a_run);
  }
  return "";
}

// The section that the loss scale is set in.
std::string section_of(const LossScaleSettings& settings) {
  return settings.rule == LossScaleRule::apex ? "amp." : "fp16.";
}

const std::string lower_the_rate = "Lower the learning rate or clip gradients (gradient_clipping)";

std::string at_minimum_message(const StepOutcome& outcome, const LossScaleSettings& settings,
                               const std::string& culprit) {
  const std::string key = settings.min_loss_scale > 0.0 ? " (" + section_of(settings) + "min_loss_scale)" : "";
  return "the loss scale is at its minimum, " + count_exactly(outcome.scale) + key +
         ", and gradients still overflow; " + culprit + ". " +
         (outcome.scale > 1.0
              ? "Lower " + section_of(settings) + "min_loss_scale: smaller scales may fit."
              : "The model or its data make the value, not the scale: lower the learning rate, or train "
                "in bf16.");
}

std::string unscaled_message(const StepOutcome& outcome, const Settings& settings, const std::string& culprit) {
  const bool loss = outcome.decision.reason == SkipReason::loss_not_finite;
  return std::string(loss ? "the loss" : "the gradient norm") + " is not finite; " + culprit + ". " + lower_the_rate +
         (precision_preset(settings.precision.preset).precision.parameter != DType::bf16
              ? "."
              : "; bf16.check_grad_overflow true would skip single such steps.");
}

std::string losses_in_a_row_message(const StepOutcome& outcome, const LossScaler& scaler, const std::string& culprit) {
  return "the loss is not finite for " + std::to_string(outcome.decision.in_a_row) + " steps in a row; " + culprit +
         ". " + (scaler.scales() ? "It is so before the loss scale is applied, so that no scale can help. " : "") +
         lower_the_rate + (scaler.scales() ? ", or train in bf16." : ".");
}

std::string skips_in_a_row_message(const StepOutcome& outcome, const LossScaler& scaler, const Settings& settings,
                                   const std::string& culprit) {
  const Decision& decision = outcome.decision;
  const std::string count = std::to_string(decision.in_a_row) + " steps in a row were skipped, the last one because ";
  if (decision.spike) {
    return count + spike_text(*decision.spike) +
           ". Steps that are skipped do not move the range, so this would go on for ever. Lower the learning rate, or "
           "widen the range (training.spike_guard.deviations).";
  }
  const bool loss = decision.reason == SkipReason::loss_not_finite;
  std::string remedy = lower_the_rate + ".";
  if (scaler.scales() && !scaler.dynamic() && !loss) {
    remedy = "Lower " + section_of(settings.loss_scale) + "loss_scale, or make it dynamic (" +
             (settings.loss_scale.rule == LossScaleRule::apex ? "\"dynamic\"" : "0") + ").";
  }
  return count + (loss ? "the loss is" : "gradients are") + " not finite; " + culprit + ". " + remedy;
}

}  // namespace

std::vector<std::string> retry_lines(std::int64_t step, const StepOutcome& outcome) {
  std::vector<std::string> lines;
  const std::vector<double>& scales = outcome.retried_scales;
  for (std::size_t attempt = 0; attempt < scales.size(); ++attempt) {
    const double next = attempt + 1 < scales.size() ? scales[attempt + 1] : outcome.scale;
    lines.push_back(step_name(step) + ": gradients overflowed at loss scale " + count_exactly(scales[attempt]) +
                    ", run again at " + count_exactly(next));
  }
  return lines;
}

std::string skip_line(std::int64_t step, const StepOutcome& outcome, const LossScaler& scaler) {
  return step_name(step) + " skipped: " + why_skipped(outcome, scaler);
}

bool needs_diagnosis(const Decision& decision) { return !decision.spike; }

std::string failure_message(std::int64_t step, const StepOutcome& outcome, const LossScaler& scaler,
                            const Settings& settings, const std::string& culprit) {
  const std::string start = step_name(step) + ": ";
  switch (outcome.decision.failure) {
    case Failure::none: break;
    case Failure::at_minimum: return start + at_minimum_message(outcome, settings.loss_scale, culprit);
    case Failure::unscaled: return start + unscaled_message(outcome, settings, culprit);
    case Failure::losses_in_a_row: return start + losses_in_a_row_message(outcome, scaler, culprit);
    case Failure::skips_in_a_row: return start + skips_in_a_row_message(outcome, scaler, settings, culprit);
    case Failure::spike:
      return start + spike_text(*outcome.decision.spike) +
             "; training.spike_guard.action \"stop\" ends the run before the update. " + lower_the_rate +
             "; \"skip\" would leave such steps out.";
  }
  return start;
}

std::string not_finite_end(std::int64_t step, const std::optional<double>& loss,
                           const std::optional<double>& validation_loss) {
  const std::string remedy = ". " + lower_the_rate + ".";
  if (validation_loss && std::isfinite(*validation_loss)) return "";  // then a last step that was skipped does no harm
  if (validation_loss) {
    return "the validation loss after " + step_name(step) +
           " is not finite: the updates have made weights that give no finite outputs" + remedy;
  }
  if (loss && !std::isfinite(*loss))
    return "the run ended with " + step_name(step) + ", whose loss is not finite" + remedy;
  return "";
}

std::string nothing_applied_warning(std::int64_t attempted, SkipReason last_reason, const LossScaler& scaler,
                                    const Settings& settings) {
  const std::string start = "no step was applied: all " + std::to_string(attempted);
  const LossScaleSettings& scale = settings.loss_scale;
  if (last_reason == SkipReason::gradient_overflow && scaler.dynamic()) {
    return start + " overflowed while the loss scale came down; train longer" +
           (scale.rule == LossScaleRule::deepspeed ? ", or start lower with fp16.initial_scale_power" : "");
  }
  if (last_reason == SkipReason::gradient_overflow && scaler.scales()) {
    return start + " overflowed at the static loss scale; lower " + section_of(scale) +
           "loss_scale, or make it dynamic";
  }
  return start + " were skipped, the last one because " +
         (last_reason == SkipReason::loss_not_finite ? "the loss is" : "gradients are") + " not finite";
}

std::string stop_line(int signal, std::int64_t step, const std::optional<std::int64_t>& computed,
                      std::int64_t micro_steps) {
  std::string line = "stopped by signal " + std::to_string(signal) + " after " + step_name(step) +
                     ", with a checkpoint: --resume goes on from there";
  if (computed) {
    line += "; " + step_name(step + 1) + " was left after " + std::to_string(*computed) + " of its " +
            std::to_string(micro_steps) + " micro-steps and begins anew then";
  }
  return line;
}

std::string early_stopping_line(std::int64_t step, const EarlyStoppingSettings& settings) {
  return "early stopping after step " + std::to_string(step) + ": the validation loss has not improved" +
         (settings.min_delta > 0.0 ? " by more than " + significant(settings.min_delta, 4) : "") + " in " +
         std::to_string(settings.patience) + " evaluation(s) (training.early_stopping)";
}

}  // namespace zt
