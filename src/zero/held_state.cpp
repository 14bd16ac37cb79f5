#include "zero/held_state.h"

#include <algorithm>

#include "zero/step_parts.h"

namespace zt {

namespace {

enum class Share : std::uint8_t { owned, updated };

void visit_state(Engine& engine, StateStore& states, int kind, Share share, const VisitState& visit) {
  const Layout& layout = engine.context().layout;
  const auto is_held = [&](int tensor) { return kind == held_weights || states.keeps(kind, layout.tensor(tensor)); };
  const auto visit_segment = [&](int unit, Segment segment) {
    const std::vector<int>& tensors = layout.unit(unit).segment(segment).tensors;
    if (std::none_of(tensors.begin(), tensors.end(), is_held)) return;
    const auto [held_begin, held_end] = engine.updated_range(unit, segment);
    const auto [begin, end] =
        share == Share::owned ? engine.slice_range(unit, segment) : std::pair(held_begin, held_end);
    TensorView held;
    if (is_trained(segment)) {
      const BorrowedState state = states.borrow(unit, segment);
      held = kind == held_weights ? state.master : state.moments.at(static_cast<std::size_t>(kind));
    }
    if (!held) held = engine.resting_parameters(unit, segment);
    const std::int64_t skipped = begin - held_begin;
    layout.for_each_piece(unit, segment, begin, end, [&](const Piece& piece) {
      if (!is_held(piece.tensor)) return;
      visit({piece.tensor, piece.tensor_offset, held.part(skipped + piece.offset, piece.count)});
    });
    if (is_trained(segment)) states.give_back(unit, segment);
  };
  if (kind == held_weights) {
    for_each_segment(layout, all_segments, visit_segment);
  } else {
    for_each_segment(layout, trained_segments, visit_segment);
  }
}

}  // namespace

void visit_owned_state(Engine& engine, StateStore& states, int kind, const VisitState& visit) {
  visit_state(engine, states, kind, Share::owned, visit);
}

void visit_updated_state(Engine& engine, StateStore& states, int kind, const VisitState& visit) {
  visit_state(engine, states, kind, Share::updated, visit);
}

}  // namespace zt
