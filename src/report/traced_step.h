// One step of a run's trace.json (train/trace.h): when each rank computed with, gathered, reduced, updated and freed
// which unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/activity.h"

namespace zt {

struct TracedUnit {
  std::string name;
  std::int64_t parameters = 0;
  bool trains = true;
};

// The beginning or the end of what a rank did.
struct TracedMoment {
  double microseconds = 0.0;  // since the step began
  double progress = 0.0;      // of the step, in [0, 1]: passes have equal shares, and so have the moments of a pass
  int rank = 0;
  Activity activity = Activity::step;
  std::int64_t number = 0;  // of the unit; of the micro-step, for passes
  bool begins = true;
};

struct TracedStep {
  std::int64_t step = 0;
  int stage = 0, ranks = 1;
  std::int64_t accumulation = 1;
  std::vector<TracedUnit> units;
  std::vector<TracedMoment> moments;  // of all ranks, by ascending progress, then time
};

// Of the last step that the file holds whole. None where there is no such file. If the file is no trace, or holds no
// whole step, `remark` says so.
std::optional<TracedStep> read_traced_step(const std::string& path, std::string& remark);

}  // namespace zt
