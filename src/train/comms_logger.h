// DeepSpeed's comms_logger: times the collectives of training steps, as rank 0 runs them (docs/outputs.md). Logging
// changes no bit. Times are read where collectives run, steps later than they were taken, so that no step waits for
// them; what is kept does not grow with the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"
#include "train/comms_table.h"

namespace zt {

class Layout;

struct CommsLoggerSettings {
  bool enabled = false;
  bool verbose = false;                 // a line for each call, too
  bool prof_all = true;                 // all kinds; or those in the names of prof_ops
  std::vector<std::string> prof_ops{};  // DeepSpeed's: "all_gather_into_tensor" names all_gather
  bool debug = false;                   // tells what calls are for
};
// From a resolved config.
CommsLoggerSettings comms_logger_settings(const nlohmann::ordered_json& config);

class CommsLogger {
 public:
  // The decorators to use in place of these two, which must outlive them.
  CommsLogger(const CommsLoggerSettings& settings, Device& device, Communicator& communicator);
  ~CommsLogger();
  CommsLogger(const CommsLogger&) = delete;
  CommsLogger& operator=(const CommsLogger&) = delete;
  Device& device();
  Communicator& communicator();

  // Before the first step: what the lines call the units.
  void name_units(const Layout& layout);

  // After each step: the lines to be said, with `verbose` alone, for which the host waits. `was_left`: the step was
  // given up between two micro-steps, and what was sent since its passes began does not count.
  std::vector<std::string> after_step(std::int64_t step, bool was_left);
  // After the last one: the rest of these lines, and the table.
  std::vector<std::string> finish();

 private:
  class Calls;
  class WatchedDevice;
  class WatchedCommunicator;

  struct Call {
    CollectiveGroup group;
    std::int64_t sent = 0;
    Stream stream = Stream::compute;
    TimeMark begin{}, end{};
  };
  struct LoggedStep {
    std::int64_t number = 0;
    std::vector<Call> calls{};
    std::array<Event, stream_count> ends{};
  };
  void settle_oldest(std::vector<std::string>& lines);

  CommsLoggerSettings settings_;
  Device& device_;
  CommsTableContext context_;
  std::unique_ptr<Calls> calls_;
  std::unique_ptr<WatchedDevice> watched_device_;  // null: nobody asks what calls are for
  std::unique_ptr<WatchedCommunicator> watched_communicator_;
  std::deque<LoggedStep> unread_;
  CollectiveSums sums_;
  std::int64_t steps_ = 0;
};

}  // namespace zt
