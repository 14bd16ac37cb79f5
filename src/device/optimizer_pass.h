// What the pass of an optimizer over its tensors reads and writes: every backend's class that computes a step of
// gradient, parameter and moments derives from one of these.
#pragma once

namespace zt {

// Most take the gradient times the factor and change the parameter and all their moments.
struct OptimizerPass {
  static constexpr int only_written = 0;  // so many moments, the last ones, are not read
  static constexpr bool takes_gradient = true, scales_gradient = true;
  static constexpr bool changes_parameter = true, changes_moments = true;
};

// The third moment is the direction.
struct LambMomentsPass : OptimizerPass {
  static constexpr int moments = 3, only_written = 1;
  static constexpr bool changes_parameter = false;
};
struct LambUpdatePass : OptimizerPass {
  static constexpr int moments = 2;
  static constexpr bool takes_gradient = false, changes_moments = false;
};

// The momentum is in the parameter's place, the direction in a moment's.
struct MuonDirectionPass : OptimizerPass {
  static constexpr int moments = 1, only_written = 1;
};
// The direction is in the gradient's place.
struct MuonUpdatePass : OptimizerPass {
  static constexpr int moments = 0;
  static constexpr bool scales_gradient = false;
};

}  // namespace zt
