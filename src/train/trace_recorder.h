// What has been put on a rank's streams, and for what: spans with marks until the device has come to them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace zt {

// Whether an activity's number is a unit's.
constexpr bool is_of_unit(Activity activity) { return activity >= Activity::compute; }

class TraceRecorder {
 public:
  struct Span {
    enum class Kind : std::uint8_t { operation, copy, collective, activity };
    Kind kind = Kind::operation;
    Stream stream = Stream::compute;
    Activity activity = Activity::step;   // of an activity: which; of others: the innermost one that they are for
    Activity pass = Activity::step;       // of others: forward, backward or finish; step: none of them
    std::int64_t number = 0;              // of the activity: of the unit, if it is of one
    std::string_view name;                // of a lifetime without end
    std::array<std::int64_t, 3> shape{};  // of a product: m, n, k
    std::int64_t bytes = 0;               // sent, or copied
    double flops = 0.0;
    TimeMark begin, end;
  };
  // An activity begins or ends.
  struct Moment {
    std::size_t span = 0;
    bool begins = false;
  };
  struct Times {
    double begin = 0.0, end = 0.0;  // seconds since start()
  };

  // Spans beyond so many are left out.
  static constexpr std::size_t most_spans = 1'000'000;

  explicit TraceRecorder(Device& device) : device_(device) {}

  void start();
  void stop() { recording_ = false; }
  bool recording() const { return recording_; }

  void begin_activity(Activity activity, std::int64_t number);
  // Of one that began before the recording, or was left out, nothing is open.
  void end_activity(Activity activity, std::int64_t number);
  // The span of something put on a stream between the two calls; none: it is not recorded.
  std::optional<std::size_t> begin(Span span);
  void end(std::optional<std::size_t> span);

  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<Moment>& log() const { return log_; }
  std::int64_t left_out() const { return left_out_; }
  // The times of the spans. The host must have waited for the device since stop(). Once.
  std::vector<Times> settle();
  void clear();

 private:
  Activity pass() const;  // that is going on

  Device& device_;
  bool recording_ = false;
  TimeMark base_;
  std::vector<Span> spans_;
  std::vector<Moment> log_;
  std::vector<std::size_t> open_;  // activities, the one that began last behind
  std::int64_t left_out_ = 0;
};

}  // namespace zt
