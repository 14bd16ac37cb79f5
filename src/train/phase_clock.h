// How long phases of a step take on the device's compute stream, found without making the host wait.
#pragma once

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
    ~Span() { clock_.spans_.push_back({&total_, begin_, clock_.device_.mark(Stream::compute)}); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    PhaseClock& clock_;
    double& total_;
    TimeMark begin_;
  };

  // Adds up the spans so far. The host must have waited for the compute stream since the last of them.
  void settle() {
    for (const Measured& span : spans_) *span.total += device_.seconds_between(span.begin, span.end);
    spans_.clear();
  }

 private:
  struct Measured {
    double* total;
    TimeMark begin, end;
  };
  Device& device_;
  std::vector<Measured> spans_;
};

}  // namespace zt
