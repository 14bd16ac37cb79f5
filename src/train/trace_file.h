// trace.json: what the ranks have recorded as a Chrome trace, which Perfetto and chrome://tracing open
// (docs/outputs.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/trace_recorder.h"
#include "zero/layout.h"

namespace zt {

// Attempted steps, counted since training began, both included.
struct TracedSteps {
  std::int64_t first = 2, last = 3;
};
// From "2-3" or "5". Errors: UserError that names the option.
TracedSteps traced_steps(const std::string& text);

// A rank's part of the file.
struct TraceRecord {
  std::string events;  // "traceEvents" of it, separated by commas
  std::string log;     // [microseconds, activity, number, 1 at its beginning and 0 at its end], ... in order
};
// Settles the recorder and clears it.
TraceRecord take_record(TraceRecorder& recorder, const Layout& layout, int rank);
// As one string for collectives, and back.
std::string packed(const TraceRecord& record);
TraceRecord unpacked(const std::string& text);

// What the file says of the run beside its events.
struct TracedRun {
  int stage = 0, ranks = 1;
  std::string precision;
  std::int64_t accumulation = 1;
  TracedSteps steps;
};
// The text of the file, from the records of all ranks, in their order.
std::string trace_text(const TracedRun& run, const Layout& layout, const std::vector<TraceRecord>& ranks);

}  // namespace zt
