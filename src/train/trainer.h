// A training run on one rank, from the resolved config to summary.json.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/resume_point.h"
#include "comm/communicator.h"
#include "config/resolve.h"
#include "data/source.h"
#include "train/plan.h"
#include "train/trace_file.h"

namespace zt {

struct TrainOptions {
  bool quiet = false, verbose = false;
  bool resume = false;                                  // the output directory may hold a run: it is added to
  std::optional<ResumePoint> resume_point;              // where to go on from; none: from the beginning
  std::chrono::steady_clock::time_point process_start;  // for seconds.startup
  std::function<int()> stop_signal;                     // the signal received so far, or 0
  // Seconds from one look for a signal that any rank has received to the next within a step, which is left then
  // (train/stop_watch.h); none: steps come to their end.
  std::optional<double> asks_for_stop_every = 0.5;
  std::vector<std::string> resume_notices;  // what the search for it has passed over
  std::string program = "zerotrain";        // what checkpoints say that they were written by
  bool traces = false;                      // records steps into trace.json (train/run_trace.h): these, or the second
  std::optional<TracedSteps> traced_steps;  // and third
  std::string communicator_note;            // a line about how ranks talk, or ""
};

// The steps that `training` lets a run attempt since it began: max_steps, or max_epochs of `samples` if that is less.
std::int64_t steps_to_attempt(const TrainingSettings& training, std::int64_t batch, std::int64_t samples);

// Trains. All ranks call it with the same arguments. Returns the exit code: 0, 1 (failed; the reason has been said
// and is in summary.json), 128 + signal. RunError and UserError pass through, after summary.json of a run that had
// begun has been written with status "failed".
int train(const ResolvedConfig& config, const Dataset& dataset, Communicator& communicator,
          const TrainOptions& options);

}  // namespace zt
