#include "inference/sliding_source.h"

#include <algorithm>
#include <vector>

namespace zt {

SlidingSource::SlidingSource(const Source& windows, std::int64_t stride)
    : windows_(windows),
      stride_(stride),
      length_(windows.shape().tokens),
      total_(windows.samples() * length_),
      samples_(1 + (total_ - length_ + stride - 1) / stride) {}

std::int64_t SlidingSource::start_of(std::int64_t index) const { return std::min(index * stride_, total_ - length_); }

std::int64_t SlidingSource::first_counted(std::int64_t index) const {
  if (index == 0) return 0;
  return start_of(index - 1) + length_ - start_of(index);
}

void SlidingSource::sample(std::int64_t index, const SampleView& out) const {
  thread_local std::vector<std::int32_t> tokens, targets;  // of one of `windows`; memory is taken once
  tokens.resize(static_cast<std::size_t>(length_));
  targets.resize(static_cast<std::size_t>(length_));
  const std::int64_t start = start_of(index);
  for (std::int64_t done = 0; done < length_;) {
    const std::int64_t window = (start + done) / length_;
    const std::int64_t within = (start + done) % length_;
    const std::int64_t count = std::min(length_ - within, length_ - done);
    windows_.sample(window, {.tokens = tokens, .token_targets = targets, .features = {}, .value_targets = {}});
    std::copy_n(tokens.begin() + within, count, out.tokens.begin() + done);
    std::copy_n(targets.begin() + within, count, out.token_targets.begin() + done);
    done += count;
  }
  std::fill_n(out.token_targets.begin(), first_counted(index), -1);
}

}  // namespace zt
