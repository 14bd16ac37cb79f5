// Leaving a long step in its middle when the run is to stop, at the same micro-step on all ranks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "comm/communicator.h"
#include "device/device.h"

namespace zt {

class StopWatch {
 public:
  // `signal`: the stop signal that this rank has received so far, or 0; not given: none ever. The ranks ask each other
  // after about so many seconds of micro-steps.
  explicit StopWatch(std::function<int()> signal = {}, double seconds_between = 0.0);

  // This rank's part of a vote on stopping (train/agreements.h).
  std::int64_t vote() const;
  // Before a micro-step, called by all ranks alike. The signal to stop for that any rank has received, the same one on
  // all; 0: none, or the ranks have not asked each other now. They do so before the first micro-step, then after one
  // more, after two, four ... more, until as many as take the time between two questions: then they hold each other up
  // with a sum of two integers, and the host waits for its device. How many those are they agree on with each answer,
  // by the mean of the times that they took.
  int ask(Device& device, Communicator& communicator);
  std::int64_t asked() const { return asked_; }

 private:
  using Clock = std::chrono::steady_clock;

  std::function<int()> signal_;
  double seconds_between_;
  std::int64_t stride_ = 1;  // micro-steps from one question to the next
  std::int64_t left_ = 0;    // of them
  std::int64_t asked_ = 0;
  Clock::time_point last_;
};

}  // namespace zt
