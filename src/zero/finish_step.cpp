#include "zero/finish_step.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/random.h"
#include "zero/held_state.h"
#include "zero/step_parts.h"

namespace zt {

StepSums::StepSums(Device& device)
    : device_(device),
      buffer_(device.allocate(static_cast<std::int64_t>(sizeof(StepMessage)), MemoryCategory::workspace, "step sums")) {
}

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
  StepMessage message;
  device_.copy(Stream::compute, &message, buffer_.data(), buffer_.bytes());
  device_.synchronize(Stream::compute);
  message.votes = vote;
  std::array<std::int64_t, sizeof(StepMessage) / sizeof(std::int64_t)> integers{};
  std::memcpy(integers.data(), &message, sizeof message);
  communicator.all_reduce_sum(integers);
  std::memcpy(static_cast<void*>(&message), integers.data(), sizeof message);
  return message.agreement();
}

Agreement StepMessage::agreement() const {
  return {exact_sum_value(sums[0].limbs), sums[0].not_finite, exact_sum_value(sums[1].limbs), sums[1].not_finite,
          votes};
}

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
  double factor = unscale(outcome.scale, context);
  const StepNumbers numbers = numbers_of(outcome.agreed, factor, context.losses);
  outcome.loss = numbers.loss;
  outcome.grad_norm = numbers.grad_norm;
  outcome.decision = context.gate.decide(numbers);
  if (decided) decided();
  if (outcome.decision.verdict != Verdict::apply) return outcome;

  if (context.clip > 0.0) factor *= std::min(1.0, context.clip / (outcome.grad_norm + 1e-6));
  update_and_publish(context, {applied + 1, scheduled, static_cast<float>(factor)});
  return outcome;
}

void visit_weights(Engine& engine, StateStore& states, const VisitWeights& visit) {
  visit_updated_state(engine, states, held_weights, [&](const StateRun& run) {
    visit(engine.context().layout.tensor(run.tensor), run.offset, run.values);
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
  Device& device = engine.context().device;
  device.run(Stream::compute, Fill{.out = {scratch.data(), 2, DType::f32}, .value = 0.0F});
  visit_owned_state(engine, states, held_weights, [&](const StateRun& run) {
    device.run(Stream::compute, Checksum{.in = run.values,
                                         .tensor_index = static_cast<std::uint64_t>(run.tensor),
                                         .first_element = run.offset,
                                         .out = scratch.as<std::uint64_t>()});
  });
  std::uint64_t checksum = 0;
  device.copy(Stream::compute, &checksum, scratch.data(), sizeof(checksum));
  device.synchronize(Stream::compute);
  auto integer = static_cast<std::int64_t>(checksum);
  engine.context().communicator.all_reduce_sum({&integer, 1});
  return static_cast<std::uint64_t>(integer);
}

}  // namespace zt
