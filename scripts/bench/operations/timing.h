// How long work takes that is repeated.
#pragma once

#include <algorithm>
#include <chrono>

#include "device/device.h"

namespace zt::bench {

// Seconds of one run: the least of three repetitions, each of which lasts at least `seconds` (or 1000 runs).
// `repeat(n)` runs the work n times and returns the seconds of all.
template <typename Repeat>
double least_time(double seconds, const Repeat& repeat) {
  repeat(1);
  const int times = std::clamp(static_cast<int>(seconds / std::max(repeat(1), 1e-7)), 1, 1000);
  double best = repeat(times);
  for (int repetition = 1; repetition < 3; ++repetition) best = std::min(best, repeat(times));
  return best / times;
}

// Work of the host.
template <typename Work>
double time_on_host(double seconds, const Work& work) {
  return least_time(seconds, [&](int times) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
}

// An operation, by the device's clock.
inline double time_of(Device& device, const Operation& operation, double seconds) {
  device.prepare(operation);
  device.reserve_workspace();
  return least_time(seconds, [&](int times) {
    const TimeMark from = device.mark(Stream::compute);
    for (int i = 0; i < times; ++i) device.run(Stream::compute, operation);
    const TimeMark to = device.mark(Stream::compute);
    device.synchronize(Stream::compute);
    return device.seconds_between(from, to);
  });
}

}  // namespace zt::bench
