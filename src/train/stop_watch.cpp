#include "train/stop_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "train/agreements.h"

namespace zt {

StopWatch::StopWatch(std::function<int()> signal, double seconds_between)
    : signal_(std::move(signal)), seconds_between_(seconds_between) {}

std::int64_t StopWatch::vote() const { return signal_ ? vote_for(signal_()) : 0; }

int StopWatch::ask(Device& device, Communicator& communicator) {
  if (!signal_ || left_-- > 0) return 0;
  // A device that computes behind the host's back has more steps to do than the host believes, and takes other times.
  for (const Stream stream : {Stream::reduce, Stream::gather, Stream::compute}) device.synchronize(stream);
  const auto now = Clock::now();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now - last_).count();
  std::array<std::int64_t, 2> sums = {vote(), asked_ == 0 ? 0 : static_cast<std::int64_t>(microseconds)};
  communicator.all_reduce_sum(sums);
  if (asked_++ > 0) {
    const double seconds =
        static_cast<double>(sums[1]) * 1e-6 / communicator.size() / static_cast<double>(stride_);  // of a micro-step
    const double fitting = seconds_between_ / std::max(seconds, 1e-9);
    stride_ =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(fitting, 2.0 * static_cast<double>(stride_))));
  }
  left_ = stride_ - 1;
  last_ = Clock::now();
  return signal_of(sums[0]);
}

}  // namespace zt
