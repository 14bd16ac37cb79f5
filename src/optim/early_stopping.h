// The best evaluation of a run, and when to stop for want of a better one: a pure state machine. Every rank runs its
// own copy on the same agreed losses.
#pragma once

#include <cstdint>
#include <optional>

#include "config/settings.h"

namespace zt {

struct BestEvaluation {
  std::int64_t step = 0;  // steps attempted before it
  double validation_loss = 0.0;
  bool operator==(const BestEvaluation&) const = default;
};

// What a checkpoint keeps of it.
struct EarlyStoppingState {
  std::optional<BestEvaluation> best;    // the lowest loss, the earliest of equals
  std::optional<double> reference;       // what an improvement is measured against
  std::int64_t without_improvement = 0;  // evaluations in a row
  bool operator==(const EarlyStoppingState&) const = default;
};

// An evaluation improves if its loss is lower than the reference by more than min_delta, and becomes the reference
// then. Small steps down thus add up to an improvement sooner or later. The first finite loss improves; one that is not
// finite never does. `patience` evaluations in a row without improvement stop the run; patience 0 never.
class EarlyStopping {
 public:
  explicit EarlyStopping(const EarlyStoppingSettings& settings) : settings_(settings) {}

  // After each evaluation. Says whether the run should stop.
  bool evaluated(std::int64_t step, double validation_loss);
  // The same after set_state().
  bool is_over() const { return settings_.patience > 0 && state_.without_improvement >= settings_.patience; }

  const std::optional<BestEvaluation>& best() const { return state_.best; }
  const EarlyStoppingState& state() const { return state_; }
  void set_state(const EarlyStoppingState& state) { state_ = state; }

 private:
  EarlyStoppingSettings settings_;
  EarlyStoppingState state_;
};

}  // namespace zt
