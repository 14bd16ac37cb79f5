// The end of a step without a wait of the host: the device agrees, decides and updates, and the host reads a step later
// what has become of it (training.report_delay). For runs that end with the first step that is not finite: from there
// on the device leaves weights and states as they are, so that step can be looked into. The bits are those of
// finish_step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "zero/finish_step.h"

namespace zt {

class DelayedSteps {
 public:
  explicit DelayedSteps(Device& device);

  // Before the first operation of a step.
  void begin();
  // As finish_step, for a scale of 1 and the step of this number; returns once everything is on the device's streams.
  // At most `most_unread` - 1 steps may be unread.
  void finish(FinishContext& context, std::int64_t step, std::int64_t applied, const ScheduledValues& scheduled,
              std::int64_t vote);
  std::size_t unread() const { return unread_.size(); }

  // The oldest unread step; the host waits for it. The decision is that of the gate, which must be of a kind that
  // ends the run where it does not apply.
  StepOutcome read(UpdateGate& gate);

  static constexpr std::size_t most_unread = 2;

 private:
  struct Slot {
    StepMessage message;
    std::int64_t vote = 0;
  };
  struct Unread {
    std::int64_t step = 0;
    std::size_t slot = 0;
    Event event;
    TimeMark begin, end;
    double unscale = 1.0, losses = 1.0, learning_rate = 0.0;
  };

  Device& device_;
  Buffer decision_;  // an UpdateDecision on the device
  Buffer slots_;     // on the host, `most_unread` of them
  std::size_t next_slot_ = 0;
  std::deque<Unread> unread_;
  TimeMark begin_;  // of the step that runs or comes next; none before the first
};

}  // namespace zt
