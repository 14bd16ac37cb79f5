// --trace: records a few steps of a run and writes them to the output directory's trace.json (train/trace.h).
#pragma once

#include <optional>
#include <string>

#include "train/console.h"
#include "train/session.h"
#include "train/trace.h"
#include "train/trace_file.h"

namespace zt {

class RunTrace {
 public:
  // The file goes to `directory`. Without `steps`: the second and the third that this run attempts.
  RunTrace(std::optional<TracedSteps> steps, std::string directory, Device& device, Communicator& communicator)
      : asked_(steps), directory_(std::move(directory)), trace_(device, communicator) {}

  // What the session is to be made with.
  Device& device() { return trace_.device(); }
  Communicator& communicator() { return trace_.communicator(); }

  // All ranks, before and after each step; `last_step`: the last that will be attempted.
  void before_step(const Session& session, std::int64_t last_step);
  void after_step(Session& session, Console& console);
  // After the last step, whatever ended the run: writes what there is. Errors: RunError, on all ranks, if the file
  // cannot be written.
  void finish(Session& session, Console& console);

 private:
  std::optional<TracedSteps> asked_;
  std::string directory_;
  Trace trace_;
  std::optional<TracedSteps> steps_;  // none: before the first step
  std::int64_t last_recorded_ = 0;
  bool is_written_ = false;
};

}  // namespace zt
