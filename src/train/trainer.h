// A training run on one rank, from the resolved config to summary.json.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "comm/communicator.h"
#include "config/resolve.h"
#include "data/source.h"
#include "train/plan.h"

namespace zt {

struct TrainOptions {
  bool quiet = false, verbose = false;
  bool resume = false;                                  // the output directory may hold a run: it is added to
  std::chrono::steady_clock::time_point process_start;  // for seconds.startup
  std::function<int()> stop_signal;                     // the signal received so far, or 0
  std::string communicator_note;                        // a line about how ranks talk, or ""
};

// Trains. All ranks call it with the same arguments. Returns the exit code: 0, 1 (failed; the reason has been said
// and is in summary.json), 128 + signal. RunError and UserError pass through, after summary.json of a run that had
// begun has been written with status "failed".
int train(const ResolvedConfig& config, const Dataset& dataset, Communicator& communicator,
          const TrainOptions& options);

}  // namespace zt
