#include "zero/finish_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "core/random.h"

namespace zt {

StepSums::StepSums(Device& device)
    : device_(device),
      buffer_(device.allocate(2 * static_cast<std::int64_t>(sizeof(Accumulator)), MemoryCategory::workspace,
                              "step sums")) {}

void StepSums::clear() {
  device_.run(Stream::compute, Fill{.out = {buffer_.data(), buffer_.bytes() / 4, DType::f32}, .value = 0.0F});
}

void StepSums::add_losses(const float* losses, std::int64_t count) {
  device_.run(Stream::compute, SumValues{.in = losses, .count = count, .out = buffer_.as<Accumulator>()});
}

void StepSums::add_squares(ConstTensorView gradients) {
  device_.run(Stream::compute, SumSquares{.in = gradients, .out = buffer_.as<Accumulator>() + 1});
}

Agreement StepSums::agree(Communicator& communicator, std::int64_t vote) {
  struct Message {
    std::array<Accumulator, 2> sums;
    std::int64_t votes;
  } message{};
  static_assert(sizeof(Message) % sizeof(std::int64_t) == 0);
  device_.copy(Stream::compute, message.sums.data(), buffer_.data(), buffer_.bytes());
  device_.synchronize(Stream::compute);
  message.votes = vote;
  std::array<std::int64_t, sizeof(Message) / sizeof(std::int64_t)> integers{};
  std::memcpy(integers.data(), &message, sizeof(Message));
  communicator.all_reduce_sum(integers);
  std::memcpy(static_cast<void*>(&message), integers.data(), sizeof(Message));
  return {exact_sum_value(message.sums[0].limbs), message.sums[0].not_finite, exact_sum_value(message.sums[1].limbs),
          message.sums[1].not_finite, message.votes};
}

namespace {

// Calls f(unit, segment) in forward order for the segments that have tensors.
template <typename F>
void for_each_segment(const Layout& layout, std::span<const Segment> segments, F&& f) {
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : segments) {
      if (layout.unit(unit).segment(segment).elements > 0) f(unit, segment);
    }
  }
}

void add_squares_of_slices(Engine& engine, StepSums& sums) {
  const Layout& layout = engine.context().layout;
  for_each_segment(layout, trained_segments, [&](int unit, Segment segment) {
    const auto [begin, end] = engine.slice_range(unit, segment);
    const ConstTensorView slice = engine.summed_slice(unit, segment);
    for (const Piece& piece : layout.pieces(unit, segment, begin, end)) {
      sums.add_squares(slice.part(piece.offset, piece.count));
    }
  });
}

bool decays(const FinishContext& context, TensorKind kind) {
  switch (kind) {
    case TensorKind::matrix: return true;
    case TensorKind::bias: return context.decay_biases;
    case TensorKind::norm: return context.decay_norms;
  }
  return true;
}

// What the optimizer sees of one segment.
std::vector<OptimizerPiece> pieces_of(const FinishContext& context, const BorrowedState& state, int unit,
                                      Segment segment) {
  Engine& engine = context.engine;
  const Layout& layout = engine.context().layout;
  const auto [begin, end] = engine.updated_range(unit, segment);
  const TensorView resting = engine.resting_parameters(unit, segment);
  const ConstTensorView gradients = engine.summed_gradients(unit, segment);
  std::vector<OptimizerPiece> pieces;
  for (const Piece& place : layout.pieces(unit, segment, begin, end)) {
    OptimizerPiece piece;
    piece.decay = decays(context, layout.tensor(place.tensor).kind);
    piece.tensor = place.tensor;
    piece.offset = place.tensor_offset;
    piece.master = (state.master ? state.master : resting).part(place.offset, place.count);
    piece.gradient = gradients.part(place.offset, place.count);
    if (state.master) piece.published = resting.part(place.offset, place.count);
    for (std::size_t moment = 0; moment < state.moments.size(); ++moment) {
      if (state.moments[moment]) piece.moments.at(moment) = state.moments[moment].part(place.offset, place.count);
    }
    pieces.push_back(piece);
  }
  return pieces;
}

void update_and_publish(FinishContext& context, const OptimizerStep& step) {
  Engine& engine = context.engine;
  const Layout& layout = engine.context().layout;
  Device& device = engine.context().device;
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : trained_segments) {
      if (layout.unit(unit).segment(segment).elements == 0) continue;
      const std::vector<OptimizerPiece> pieces =
          pieces_of(context, context.states.borrow(unit, segment), unit, segment);
      context.optimizer.statistics(device, pieces, step);
      context.optimizer.apply(device, pieces, step);
      context.states.give_back(unit, segment);
    }
    engine.publish(unit, Changed::trained);
  }
}

// What the sums of gradients are multiplied by: they were made with this scale, whatever the next one is.
double unscale(double scale, const FinishContext& context) {
  return 1.0 / (scale * static_cast<double>(context.micro_batches));
}

StepNumbers numbers_of(const Agreement& agreed, double scale, const FinishContext& context) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  StepNumbers numbers;
  numbers.loss_is_finite = agreed.losses_not_finite == 0;
  numbers.gradients_are_finite = agreed.gradients_not_finite == 0;
  numbers.loss = numbers.loss_is_finite ? agreed.loss_sum / context.losses : unknown;
  const bool norm_is_known = numbers.loss_is_finite && numbers.gradients_are_finite;
  numbers.grad_norm = norm_is_known ? std::sqrt(agreed.squares) * unscale(scale, context) : unknown;
  return numbers;
}

}  // namespace

StepOutcome finish_step(FinishContext& context, std::int64_t applied, const ScheduledValues& scheduled,
                        std::int64_t vote, const std::function<void()>& decided) {
  Engine& engine = context.engine;
  Device& device = engine.context().device;
  device.wait(Stream::compute, device.record(Stream::reduce));
  device.wait(Stream::compute, device.record(Stream::gather));
  add_squares_of_slices(engine, context.sums);

  StepOutcome outcome;
  outcome.scale = context.gate.scaler().scale();
  outcome.learning_rate = scheduled.learning_rate;
  outcome.agreed = context.sums.agree(engine.context().communicator, vote);
  const StepNumbers numbers = numbers_of(outcome.agreed, outcome.scale, context);
  outcome.loss = numbers.loss;
  outcome.grad_norm = numbers.grad_norm;
  outcome.decision = context.gate.decide(numbers);
  if (decided) decided();
  if (outcome.decision.verdict != Verdict::apply) return outcome;

  double factor = unscale(outcome.scale, context);
  if (context.clip > 0.0) factor *= std::min(1.0, context.clip / (outcome.grad_norm + 1e-6));
  update_and_publish(context, {applied + 1, scheduled, static_cast<float>(factor)});
  return outcome;
}

void visit_weights(Engine& engine, StateStore& states, const VisitWeights& visit) {
  const Layout& layout = engine.context().layout;
  for_each_segment(layout, all_segments, [&](int unit, Segment segment) {
    const auto [begin, end] = engine.updated_range(unit, segment);
    const TensorView master = is_trained(segment) ? states.borrow(unit, segment).master : TensorView{};
    const TensorView values = master ? master : engine.resting_parameters(unit, segment);
    for (const Piece& piece : layout.pieces(unit, segment, begin, end)) {
      visit(layout.tensor(piece.tensor), piece.tensor_offset, values.part(piece.offset, piece.count));
    }
    if (is_trained(segment)) states.give_back(unit, segment);
  });
}

void publish_weights(Engine& engine, StateStore& states) {
  const Layout& layout = engine.context().layout;
  Device& device = engine.context().device;
  for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
    for (const Segment segment : trained_segments) {
      if (layout.unit(unit).segment(segment).elements == 0) continue;
      const TensorView master = states.borrow(unit, segment).master;
      if (master) device.run(Stream::compute, Cast{.in = master, .out = engine.resting_parameters(unit, segment)});
      states.give_back(unit, segment);
    }
    engine.publish(unit, Changed::everything);
  }
}

void initialize_parameters(Engine& engine, StateStore& states, std::uint64_t seed) {
  Device& device = engine.context().device;
  const std::uint64_t key = derive_key(seed, "initial weights");
  visit_weights(engine, states, [&](const TensorPlace& tensor, std::int64_t offset, TensorView values) {
    device.run(Stream::compute, Initialize{.out = values,
                                           .distribution = tensor.initial,
                                           .scale = tensor.initial_scale,
                                           .key = derive_key(key, tensor.name),
                                           .first_element = offset});
  });
  publish_weights(engine, states);
}

std::uint64_t weights_checksum(Engine& engine, StateStore& states, const Buffer& scratch) {
  const Layout& layout = engine.context().layout;
  Device& device = engine.context().device;
  device.run(Stream::compute, Fill{.out = {scratch.data(), 2, DType::f32}, .value = 0.0F});
  for_each_segment(layout, all_segments, [&](int unit, Segment segment) {
    const auto [begin, end] = engine.slice_range(unit, segment);
    const auto [held_begin, held_end] = engine.updated_range(unit, segment);
    const TensorView master = is_trained(segment) ? states.borrow(unit, segment).master : TensorView{};
    const TensorView values = master ? master : engine.resting_parameters(unit, segment);
    for (const Piece& piece : layout.pieces(unit, segment, begin, end)) {
      device.run(Stream::compute, Checksum{.in = values.part(begin - held_begin + piece.offset, piece.count),
                                           .tensor_index = static_cast<std::uint64_t>(piece.tensor),
                                           .first_element = piece.tensor_offset,
                                           .out = scratch.as<std::uint64_t>()});
    }
    if (is_trained(segment)) states.give_back(unit, segment);
  });
  std::uint64_t checksum = 0;
  device.copy(Stream::compute, &checksum, scratch.data(), sizeof(checksum));
  device.synchronize(Stream::compute);
  auto integer = static_cast<std::int64_t>(checksum);
  engine.context().communicator.all_reduce_sum({&integer, 1});
  return static_cast<std::uint64_t>(integer);
}

}  // namespace zt
