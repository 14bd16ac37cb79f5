// How far a training has come.
#pragma once

#include <array>
#include <cstdint>

#include "optim/update_gate.h"

namespace zt {

// Since training began, resumes included.
struct StepCounts {
  std::int64_t attempted = 0, applied = 0, skipped = 0;
  std::int64_t retried = 0;  // passes over a batch that were run again; no steps of their own
  std::array<std::int64_t, skip_reason_count> skipped_for{};  // by SkipReason
  bool operator==(const StepCounts&) const = default;
};

// All that goes on from step to step besides weights and moments: what schedules, loss scale, the order of the data and
// dropout are functions of.
struct TrainingProgress {
  StepCounts steps;
  UpdateGateState gate;
  std::int64_t samples = 0;  // of the training data, consumed since training began
  bool operator==(const TrainingProgress&) const = default;
};

}  // namespace zt
