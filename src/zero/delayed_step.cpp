#include "zero/delayed_step.h"

#include <stdexcept>
#include <utility>

#include "zero/step_parts.h"

namespace zt {

DelayedSteps::DelayedSteps(Device& device)
    : device_(device),
      decision_(device.allocate(static_cast<std::int64_t>(sizeof(UpdateDecision)), MemoryCategory::workspace,
                                "update decision")),
      slots_(device.allocate_host(static_cast<std::int64_t>(most_unread * sizeof(Slot)), "step messages")) {
  const UpdateDecision initial;
  device_.copy(Stream::compute, decision_.data(), &initial, decision_.bytes());
  device_.synchronize(Stream::compute);
}

void DelayedSteps::begin() {
  if (!unread_.empty()) return;  // it follows the step before without a pause
  if (begin_.number >= 0) {
    const TimeMark now = device_.mark(Stream::compute);
    device_.synchronize(Stream::compute);
    device_.seconds_between(begin_, now);  // what lay between, an evaluation say, belongs to no step
  }
  begin_ = device_.mark(Stream::compute);
}

void DelayedSteps::finish(FinishContext& context, std::int64_t step, std::int64_t applied,
                          const ScheduledValues& scheduled, std::int64_t vote) {
  if (unread_.size() == most_unread) throw std::logic_error("too many steps are unread");
  Engine& engine = context.engine;
  device_.wait(Stream::compute, device_.record(Stream::reduce));
  device_.wait(Stream::compute, device_.record(Stream::gather));
  add_squares_of_slices(engine, context.sums);

  Slot* const slot = slots_.as<Slot>() + next_slot_;
  StepMessage* const message = context.sums.message();
  if (device_.computes()) slot->vote = vote;
  device_.copy(Stream::compute, &message->votes, &slot->vote, sizeof vote);
  engine.context().communicator.sum_on_device(device_, Stream::compute, reinterpret_cast<std::int64_t*>(message),
                                              static_cast<std::int64_t>(sizeof *message / sizeof(std::int64_t)));
  const double factor = unscale(1.0, context);
  device_.run(Stream::compute, DecideUpdate{.sums = message->sums.data(),
                                            .unscale = factor,
                                            .clip = context.clip,
                                            .out = decision_.as<UpdateDecision>()});
  device_.copy(Stream::compute, &slot->message, message, sizeof *message);
  const TimeMark end = device_.mark(Stream::compute);
  const TimeMark begin = std::exchange(begin_, device_.mark(Stream::compute));
  unread_.push_back({.step = step,
                     .slot = next_slot_,
                     .event = device_.record(Stream::compute),
                     .begin = begin,
                     .end = end,
                     .unscale = factor,
                     .losses = context.losses,
                     .learning_rate = scheduled.learning_rate});
  next_slot_ = (next_slot_ + 1) % most_unread;
  update_and_publish(
      context,
      {.number = applied + 1, .scheduled = scheduled, .factor = 1.0F, .decision = decision_.as<UpdateDecision>()});
}

StepOutcome DelayedSteps::read(UpdateGate& gate) {
  const Unread oldest = unread_.front();
  unread_.pop_front();
  device_.synchronize(oldest.event);
  StepOutcome outcome;
  outcome.step = oldest.step;
  if (device_.computes()) outcome.agreed = slots_.as<Slot>()[oldest.slot].message.agreement();
  const StepNumbers numbers = numbers_of(outcome.agreed, oldest.unscale, oldest.losses);
  outcome.loss = numbers.loss;
  outcome.grad_norm = numbers.grad_norm;
  outcome.learning_rate = oldest.learning_rate;
  outcome.seconds = device_.seconds_between(oldest.begin, oldest.end);
  outcome.decision = gate.decide(numbers);
  return outcome;
}

}  // namespace zt
