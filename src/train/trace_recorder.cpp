#include "train/trace_recorder.h"

#include <algorithm>

namespace zt {

namespace {

Stream stream_of(Activity activity) {
  switch (activity) {
    case Activity::gather: return Stream::gather;
    case Activity::reduce: return Stream::reduce;
    default: return Stream::compute;
  }
}

}  // namespace

void TraceRecorder::start() {
  clear();
  base_ = device_.mark(Stream::compute);
  recording_ = true;
}

void TraceRecorder::clear() {
  spans_ = {};
  log_ = {};
  open_ = {};
  left_out_ = 0;
}

Activity TraceRecorder::pass() const {
  for (const std::size_t index : open_) {
    const Activity activity = spans_[index].activity;
    if (activity == Activity::forward || activity == Activity::backward || activity == Activity::finish)
      return activity;
  }
  return Activity::step;
}

void TraceRecorder::begin_activity(Activity activity, std::int64_t number) {
  if (!recording_) return;
  Span span;
  span.kind = Span::Kind::activity;
  span.stream = stream_of(activity);
  span.activity = activity;
  span.number = number;
  span.name = name_of(activity);
  const std::optional<std::size_t> index = begin(span);
  if (!index) return;
  open_.push_back(*index);
  log_.push_back({*index, true});
}

void TraceRecorder::end_activity(Activity activity, std::int64_t number) {
  if (!recording_) return;
  for (std::size_t place = open_.size(); place-- > 0;) {
    const std::size_t index = open_[place];
    if (spans_[index].activity != activity || spans_[index].number != number) continue;
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
    end(index);
    log_.push_back({index, false});
    return;
  }
}

std::optional<std::size_t> TraceRecorder::begin(Span span) {
  if (!recording_) return std::nullopt;
  if (spans_.size() >= most_spans) {
    ++left_out_;
    return std::nullopt;
  }
  if (span.kind != Span::Kind::activity && !open_.empty()) {
    span.activity = spans_[open_.back()].activity;
    span.number = spans_[open_.back()].number;
    span.pass = pass();
  }
  span.begin = device_.mark(span.stream);
  spans_.push_back(span);
  return spans_.size() - 1;
}

void TraceRecorder::end(std::optional<std::size_t> span) {
  if (span) spans_[*span].end = device_.mark(spans_[*span].stream);
}

// Every mark is read once. An activity that is still going on ends where it is cut off.
std::vector<TraceRecorder::Times> TraceRecorder::settle() {
  std::vector<Times> times(spans_.size());
  double latest = 0.0;
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    const Span& span = spans_[index];
    times[index].begin = device_.seconds_after(base_, span.begin);
    if (span.end.number >= 0) times[index].end = device_.seconds_after(base_, span.end);
    latest = std::max({latest, times[index].begin, times[index].end});
  }
  for (std::size_t index = 0; index < spans_.size(); ++index) {
    if (spans_[index].end.number < 0) times[index].end = latest;
    times[index].end = std::max(times[index].end, times[index].begin);
  }
  const TimeMark now = device_.mark(Stream::compute);
  device_.synchronize(Stream::compute);
  device_.seconds_between(base_, now);  // gives both back
  return times;
}

}  // namespace zt
