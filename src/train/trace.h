// What a rank did and when, operation by operation: recorded for a few steps by decorators of its device and its
// communicator, written as a Chrome trace (which Perfetto and chrome://tracing open, and `zerotrain report` animates).
// Recording changes no bit; on a GPU it costs two timing events an operation, on a CPU two readings of the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"
#include "zero/layout.h"

namespace zt {

// Attempted steps, counted since training began, both included.
struct TracedSteps {
  std::int64_t first = 2, last = 3;
};
// From "2-3" or "5". Errors: UserError that names the option.
TracedSteps traced_steps(const std::string& text);

class Trace {
 public:
  // The decorators that the run is to use in place of these two, which must outlive them.
  Trace(Device& device, Communicator& communicator);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  Device& device();
  Communicator& communicator();

  // All ranks: records from now on, times are told from now.
  void start();
  bool recording() const;
  void stop();

  // What has been recorded, of this rank; the host must have waited for the device since stop(). Once.
  struct Record {
    std::string events;  // "traceEvents" of it, separated by commas
    std::string log;     // [microseconds, activity, number, 1 at its beginning and 0 at its end], ... in order
  };
  Record take(const Layout& layout);

  // The same as numbers, for the program itself; in place of take().
  struct Timed {
    std::string_view name;               // of the operation or collective
    Activity pass = Activity::step;      // forward, backward or finish; step: none of them
    Activity activity = Activity::step;  // the innermost one that it was for
    std::int64_t number = 0;             // of the activity: of the unit, if it is of one
    bool collective = false;
    double flops = 0.0, seconds = 0.0;
    std::int64_t bytes = 0;  // sent, or copied
  };
  std::vector<Timed> timed();

  // Events beyond so many are left out; the log says how many there were.
  static constexpr std::size_t most_events = 1'000'000;

 private:
  class Recorder;
  class TracingDevice;
  class TracingCommunicator;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<TracingDevice> device_;
  std::unique_ptr<TracingCommunicator> communicator_;
};

// What the file says of the run beside its events.
struct TracedRun {
  int stage = 0, ranks = 1;
  std::string precision;
  std::int64_t accumulation = 1;
  TracedSteps steps;
};
// The text of the file, from the records of all ranks, in their order.
std::string trace_text(const TracedRun& run, const Layout& layout, const std::vector<Trace::Record>& ranks);

// Trace::Record as one string for collectives, and back.
std::string packed(const Trace::Record& record);
Trace::Record unpacked(const std::string& text);

}  // namespace zt
