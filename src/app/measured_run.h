// What a run's summary.json has measured of the time of its steps.
#pragma once

#include <string>

#include "app/planning.h"
#include "train/step_time.h"

namespace zt {

struct MeasuredSource {
  std::string summary;  // its path
  ConfigSource config;  // the run's own, config.resolved.json beside it
  int ranks = 1;
  MeasuredRun run;
};

// `path`: a run's directory, or its summary.json. UserError if it is none, or has nothing measured.
MeasuredSource read_measured(const std::string& path);

}  // namespace zt
