// DeepSpeed's flops_profiler: where the operations and the time of one step go, by pass and by unit of the model, as
// rank 0 has run them (docs/outputs.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/session.h"
#include "train/trace.h"

namespace zt {

struct FlopsProfilerSettings {
  bool enabled = false;
  std::int64_t profile_step = 1;  // attempted steps, from 1
  bool detailed = true;           // tells of all units; or of the top_modules that take the most time
  std::int64_t top_modules = 1;
  std::string output_file{};  // empty: the lines are said
};
// From a resolved config.
FlopsProfilerSettings flops_profiler_settings(const nlohmann::ordered_json& config);
// Before the first step. Errors: UserError, if its file has no directory to lie in, or is one.
void check_profile_output(const FlopsProfilerSettings& settings);

class FlopsProfile {
 public:
  FlopsProfile(const FlopsProfilerSettings& settings, Device& device, Communicator& communicator)
      : settings_(settings), trace_(device, communicator) {}

  // What the session is to be made with.
  Device& device() { return trace_.device(); }
  Communicator& communicator() { return trace_.communicator(); }

  // All ranks, before and after each step. Lines to be said, on the first rank after the profiled step; nothing where
  // they went to flops_profiler.output_file. Errors: RunError, on all ranks, if that cannot be written.
  void before_step(const Session& session);
  std::vector<std::string> after_step(Session& session);
  bool is_done() const { return is_done_; }

 private:
  FlopsProfilerSettings settings_;
  Trace trace_;
  bool is_done_ = false;
};

// An operation or a collective, and how long it took.
struct TimedSpan {
  TraceRecorder::Span span;
  double seconds = 0.0;
};
// The lines of a profile of one step. `units`: by their number.
std::vector<std::string> profile_lines(const std::vector<TimedSpan>& operations, const std::vector<std::string>& units,
                                       const FlopsProfilerSettings& settings, std::int64_t step);

}  // namespace zt
