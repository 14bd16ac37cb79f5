// What is said of steps that were not simply applied, and of runs that end before their last step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings.h"
#include "zero/finish_step.h"

namespace zt {

// One line for each attempt whose gradients overflowed and that was run again.
std::vector<std::string> retry_lines(std::int64_t step, const StepOutcome& outcome);

// Of Verdict::skip. `scaler`: as the step left it.
std::string skip_line(std::int64_t step, const StepOutcome& outcome, const LossScaler& scaler);

// Of Verdict::fail: why the run ends and what can be done. `culprit`: what diagnose_not_finite (train/diagnosis.h) has
// found; not used for a spike, whose values are all finite.
std::string failure_message(std::int64_t step, const StepOutcome& outcome, const LossScaler& scaler,
                            const Settings& settings, const std::string& culprit);
bool needs_diagnosis(const Decision& decision);

// Of a run that came to its end without one applied step.
// Why a run whose last numbers are not finite has not made a model, whatever its steps were; "" if they are finite.
std::string not_finite_end(std::int64_t step, const std::optional<double>& loss,
                           const std::optional<double>& validation_loss);

std::string nothing_applied_warning(std::int64_t attempted, SkipReason last_reason, const LossScaler& scaler,
                                    const Settings& settings);

// Of a run that a signal has stopped after `step`. `computed`: of the step behind it, which was left, so many of its
// `micro_steps`.
std::string stop_line(int signal, std::int64_t step, const std::optional<std::int64_t>& computed,
                      std::int64_t micro_steps);

// Of a run that early stopping has ended.
std::string early_stopping_line(std::int64_t step, const EarlyStoppingSettings& settings);

}  // namespace zt
