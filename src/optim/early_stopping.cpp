#include "optim/early_stopping.h"

#include <cmath>

namespace zt {

bool EarlyStopping::evaluated(std::int64_t step, double validation_loss) {
  const bool finite = std::isfinite(validation_loss);
  if (finite && (!state_.best || validation_loss < state_.best->validation_loss)) {
    state_.best = BestEvaluation{step, validation_loss};
  }
  if (finite && (!state_.reference || validation_loss < *state_.reference - settings_.min_delta)) {
    state_.reference = validation_loss;
    state_.without_improvement = 0;
  } else {
    ++state_.without_improvement;
  }
  return is_over();
}

}  // namespace zt
