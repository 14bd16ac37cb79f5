// How long phases of a step take on the device's compute stream, found without making the host wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"

namespace zt {

class PhaseClock {
 public:
  explicit PhaseClock(Device& device) : device_(device) {}

  // Times what is put on the compute stream during the object's life; seconds are added to `total`, which must live
  // as long as the clock.
  class Span {
   public:
    Span(PhaseClock& clock, double& total)
        : clock_(clock), total_(total), begin_(clock.device_.mark(Stream::compute)) {}
    ~Span() { clock_.add({&total_, begin_, clock_.device_.mark(Stream::compute)}); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    PhaseClock& clock_;
    double& total_;
    TimeMark begin_;
  };

  // Spans that have ended since the beginning.
  std::int64_t ended() const { return ended_; }
  // Adds up the first `count` of them. The host must have waited for the compute stream since the last of these.
  void settle(std::int64_t count) {
    for (; settled_ < count; ++settled_) {
      const Measured& span = spans_[slot_of(settled_)];
      *span.total += device_.seconds_between(span.begin, span.end);
    }
  }

 private:
  struct Measured {
    double* total;
    TimeMark begin, end;
  };
  std::size_t slot_of(std::int64_t number) const { return static_cast<std::size_t>(number) % spans_.size(); }
  // The memory grows with the most that were unsettled at once.
  void add(const Measured& span) {
    const auto unsettled = static_cast<std::size_t>(ended_ - settled_);
    if (unsettled == spans_.size()) {
      std::vector<Measured> larger(std::max<std::size_t>(16, 2 * spans_.size()));
      for (std::int64_t number = settled_; number < ended_; ++number)
        larger[static_cast<std::size_t>(number) % larger.size()] = spans_[slot_of(number)];
      spans_.swap(larger);
    }
    spans_[slot_of(ended_++)] = span;
  }

  Device& device_;
  std::vector<Measured> spans_;  // span number n is at n % size
  std::int64_t settled_ = 0, ended_ = 0;
};

}  // namespace zt
