#include "zero/step_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "zero/whole_matrices.h"

namespace zt {

void add_squares_of_slices(Engine& engine, StepSums& sums) {
  const Layout& layout = engine.context().layout;
  for_each_segment(layout, trained_segments, [&](int unit, Segment segment) {
    const auto [begin, end] = engine.slice_range(unit, segment);
    const ConstTensorView slice = engine.summed_slice(unit, segment);
    layout.for_each_piece(unit, segment, begin, end,
                          [&](const Piece& piece) { sums.add_squares(slice.part(piece.offset, piece.count)); });
  });
}

namespace {

bool decays(const FinishContext& context, TensorKind kind) {
  switch (kind) {
    case TensorKind::matrix: return true;
    case TensorKind::bias: return context.decay_biases;
    case TensorKind::norm: return context.decay_norms;
  }
  return true;
}

}  // namespace

std::vector<OptimizerPiece>& pieces_of(const FinishContext& context, const BorrowedState& state, int unit,
                                       Segment segment) {
  Engine& engine = context.engine;
  const Layout& layout = engine.context().layout;
  const auto [begin, end] = engine.updated_range(unit, segment);
  const TensorView resting = engine.resting_parameters(unit, segment);
  const ConstTensorView gradients = engine.summed_gradients(unit, segment);
  std::vector<OptimizerPiece>& pieces = context.optimizer.piece_memory();
  pieces.clear();
  const bool has_rule = context.optimizer.matrix_rule() != nullptr;
  layout.for_each_piece(unit, segment, begin, end, [&](const Piece& place) {
    OptimizerPiece piece;
    piece.decay = decays(context, layout.tensor(place.tensor).kind);
    piece.whole = has_rule && updates_whole(layout.tensor(place.tensor));
    piece.tensor = place.tensor;
    piece.offset = place.tensor_offset;
    piece.master = (state.master ? state.master : resting).part(place.offset, place.count);
    piece.gradient = gradients.part(place.offset, place.count);
    if (state.master) piece.published = resting.part(place.offset, place.count);
    for (std::size_t moment = 0; moment < state.moments.size(); ++moment) {
      if (state.moments[moment]) piece.moments.at(moment) = state.moments[moment].part(place.offset, place.count);
    }
    pieces.push_back(piece);
  });
  return pieces;
}

namespace {

// What the optimizer must know of whole tensors before it moves any. Exact sums: they do not depend on how the tensors
// are cut, so at stage 0, where every rank has them whole, nothing is sent.
void take_statistics(FinishContext& context, const OptimizerStep& step) {
  const std::span<std::int64_t> sums = context.optimizer.sums();
  if (sums.empty()) return;
  Engine& engine = context.engine;
  Device& device = engine.context().device;
  const auto count = static_cast<std::int64_t>(sums.size());
  device.run(Stream::compute, Fill{.out = {sums.data(), 2 * count, DType::f32}, .value = 0.0F});
  for_each_segment(engine.context().layout, trained_segments, [&](int unit, Segment segment) {
    const ActivitySpan span(device, Activity::update, unit);
    context.optimizer.statistics(device, pieces_of(context, context.states.borrow(unit, segment), unit, segment), step);
    context.states.give_back(unit, segment);
  });
  if (engine.updated_extent() == Extent::slice) {
    engine.context().communicator.sum_on_device(device, Stream::compute, sums.data(), count);
  }
  context.optimizer.use_statistics(device);
}

}  // namespace

void prepare_optimizer(Engine& engine, Optimizer& optimizer) {
  const Layout& layout = engine.context().layout;
  std::vector<int> tensors;
  std::int64_t longest = 0;
  for_each_segment(layout, trained_segments, [&](int unit, Segment segment) {
    for (const int tensor : layout.unit(unit).segment(segment).tensors) tensors.push_back(tensor);
    const auto [begin, end] = engine.updated_range(unit, segment);
    layout.for_each_piece(unit, segment, begin, end,
                          [&](const Piece& piece) { longest = std::max(longest, piece.count); });
  });
  optimizer.prepare(engine.context().device, tensors, longest);
}

void update_and_publish(FinishContext& context, const OptimizerStep& step) {
  Engine& engine = context.engine;
  const Layout& layout = engine.context().layout;
  Device& device = engine.context().device;
  take_statistics(context, step);
  if (context.matrices != nullptr) context.matrices->update(context, step);
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    {
      const ActivitySpan span(device, Activity::update, unit);
      for (const Segment segment : trained_segments) {
        if (layout.unit(unit).segment(segment).elements == 0) continue;
        std::vector<OptimizerPiece>& pieces = pieces_of(context, context.states.borrow(unit, segment), unit, segment);
        std::erase_if(pieces, [](const OptimizerPiece& piece) { return piece.whole; });
        context.optimizer.apply(device, pieces, step);
        context.states.give_back(unit, segment);
      }
    }
    engine.publish(unit, Changed::trained);
  }
}

double unscale(double scale, const FinishContext& context) { return 1.0 / (scale * context.divisor); }

StepNumbers numbers_of(const Agreement& agreed, double unscale, double losses) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  StepNumbers numbers;
  numbers.loss_is_finite = agreed.losses_not_finite == 0;
  numbers.gradients_are_finite = agreed.gradients_not_finite == 0;
  numbers.loss = numbers.loss_is_finite ? agreed.loss_sum / losses : unknown;
  const bool norm_is_known = numbers.loss_is_finite && numbers.gradients_are_finite;
  numbers.grad_norm = norm_is_known ? std::sqrt(agreed.squares) * unscale : unknown;
  return numbers;
}

}  // namespace zt
