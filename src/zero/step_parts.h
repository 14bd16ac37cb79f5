// What the ends of a step have in common (finish_step.h, delayed_step.h). For zero/ alone.
#pragma once

#include <span>
#include <vector>

#include "zero/finish_step.h"

namespace zt {

// Calls f(unit, segment) in forward order for the segments that have tensors.
template <typename F>
void for_each_segment(const Layout& layout, std::span<const Segment> segments, F&& f) {
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : segments) {
      if (layout.unit(unit).segment(segment).elements > 0) f(unit, segment);
    }
  }
}

// What the optimizer sees of one segment, in memory that is kept from step to step: until the next call.
std::vector<OptimizerPiece>& pieces_of(const FinishContext& context, const BorrowedState& state, int unit,
                                       Segment segment);

// Adds the squares of this rank's slices of the summed gradients to the sums.
void add_squares_of_slices(Engine& engine, StepSums& sums);
// The optimizer on what this rank owns; then all ranks see the new parameters.
void update_and_publish(FinishContext& context, const OptimizerStep& step);
// What the sums of gradients are multiplied by: they were made with this scale, whatever the next one is.
double unscale(double scale, const FinishContext& context);
// The sums as what they mean; `losses`: how many the sum of losses is over.
StepNumbers numbers_of(const Agreement& agreed, double unscale, double losses);

}  // namespace zt
