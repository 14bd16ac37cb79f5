// Marks of devices whose operations run on the host: a mark is the time at which it was asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "device/device.h"

namespace zt {

class HostMarks {
 public:
  TimeMark take() {
    if (free_.empty()) {
      free_.push_back(times_.size());
      times_.emplace_back();
    }
    const std::size_t index = free_.back();
    free_.pop_back();
    times_[index] = std::chrono::steady_clock::now();
    return {static_cast<std::int64_t>(index)};
  }
  // Seconds between them; both are over.
  double give_back(TimeMark from, TimeMark to) {
    const double seconds = give_back_last(from, to);
    free_.push_back(static_cast<std::size_t>(from.number));
    return seconds;
  }
  // The same, but `from` is kept.
  double give_back_last(TimeMark from, TimeMark to) {
    const auto last = static_cast<std::size_t>(to.number);
    free_.push_back(last);
    return std::chrono::duration<double>(times_.at(last) - times_.at(static_cast<std::size_t>(from.number))).count();
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> times_;
  std::vector<std::size_t> free_;
};

}  // namespace zt
