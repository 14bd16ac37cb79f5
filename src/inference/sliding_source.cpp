#include "inference/sliding_source.h"

#include <algorithm>

namespace zt {

SlidingSource::SlidingSource(const Source& windows, std::int64_t stride)
    : windows_(windows), stride_(stride), length_(windows.shape().tokens) {
  std::int64_t first = 0;
  for (std::int64_t window = 1; window <= windows.samples(); ++window) {
    if (window < windows.samples() && windows.goes_on(window)) continue;
    add_document(first, window);
    first = window;
  }
}

// All windows of a document but the last are whole.
void SlidingSource::add_document(std::int64_t first_window, std::int64_t next_window) {
  const std::int64_t tokens = (next_window - 1 - first_window) * length_ + windows_.losses(next_window - 1);
  documents_.push_back({samples_, first_window, tokens});
  samples_ += 1 + (std::max<std::int64_t>(0, tokens - length_) + stride_ - 1) / stride_;
}

SlidingSource::Place SlidingSource::place_of(std::int64_t index) const {
  const auto next =
      std::upper_bound(documents_.begin(), documents_.end(), index,
                       [](std::int64_t at, const Document& document) { return at < document.first_sample; });
  const Document& document = *std::prev(next);
  const std::int64_t number = index - document.first_sample;
  const std::int64_t last_start = std::max<std::int64_t>(0, document.tokens - length_);
  const std::int64_t start = std::min(number * stride_, last_start);
  const std::int64_t counted_before = number == 0 ? 0 : std::min((number - 1) * stride_, last_start) + length_;
  return {.first_window = document.first_window,
          .start = start,
          .count = std::min(length_, document.tokens - start),
          .first_counted = number == 0 ? 0 : counted_before - start};
}

std::int64_t SlidingSource::losses(std::int64_t index) const {
  const Place place = place_of(index);
  return place.count - place.first_counted;
}

void SlidingSource::sample(std::int64_t index, const SampleView& out) const {
  thread_local std::vector<std::int32_t> tokens, targets;  // of one of `windows`; memory is taken once
  tokens.resize(static_cast<std::size_t>(length_));
  targets.resize(static_cast<std::size_t>(length_));
  const Place place = place_of(index);
  for (std::int64_t done = 0; done < place.count;) {
    const std::int64_t window = place.first_window + (place.start + done) / length_;
    const std::int64_t within = (place.start + done) % length_;
    const std::int64_t count = std::min(length_ - within, place.count - done);
    windows_.sample(window, {.tokens = tokens, .token_targets = targets, .features = {}, .value_targets = {}});
    std::copy_n(tokens.begin() + within, count, out.tokens.begin() + done);
    std::copy_n(targets.begin() + within, count, out.token_targets.begin() + done);
    done += count;
  }
  std::fill(out.tokens.begin() + place.count, out.tokens.end(), 0);
  std::fill(out.token_targets.begin() + place.count, out.token_targets.end(), -1);
  std::fill_n(out.token_targets.begin(), place.first_counted, -1);
}

}  // namespace zt
