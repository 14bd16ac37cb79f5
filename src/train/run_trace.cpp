#include "train/run_trace.h"

#include <algorithm>

#include "comm/agree.h"
#include "core/errors.h"
#include "core/files.h"

namespace zt {

void RunTrace::before_step(const Session& session, std::int64_t last_step) {
  if (is_written_) return;
  const std::int64_t step = session.steps().attempted + 1;
  if (!steps_) {
    // The first step makes what later ones find ready; a run of a single one has nothing else to show.
    const std::int64_t first = std::min(step + 1, last_step);
    steps_ = asked_.value_or(TracedSteps{first, std::min(first + 1, last_step)});
  }
  if (step < steps_->first || step > steps_->last) return;
  if (!trace_.recording()) {
    steps_->first = step;
    trace_.start();
  }
  last_recorded_ = step;
  trace_.device().begin_activity(Activity::step, step);
}

void RunTrace::after_step(Session& session, Console& console) {
  if (!trace_.recording()) return;
  trace_.device().end_activity(Activity::step, last_recorded_);
  if (last_recorded_ >= steps_->last) finish(session, console);
}

void RunTrace::finish(Session& session, Console& console) {
  if (is_written_) return;
  is_written_ = true;
  if (!trace_.recording()) {
    console.warn("--trace: the run attempted none of the steps that were to be recorded");
    return;
  }
  trace_.stop();
  session.wait_for_device();
  Communicator& communicator = session.communicator();
  std::vector<TraceRecord> ranks;
  for (const std::string& text :
       communicator.all_gather_strings(packed(take_record(trace_.recorder(), session.layout(), communicator.rank()))))
    ranks.push_back(unpacked(text));
  const Settings& settings = session.settings();
  const std::string path = directory_ + "/trace.json";
  all_or_none<RunError>(communicator, [&] {
    if (communicator.rank() != 0) return;
    const TracedRun run{.stage = settings.zero.stage,
                        .ranks = communicator.size(),
                        .precision = settings.precision.preset,
                        .accumulation = settings.batch.accumulation,
                        .steps = {steps_->first, last_recorded_}};
    write_file_atomically(path, trace_text(run, session.layout(), ranks));
  });
  console.say("trace of step" +
              (steps_->first == last_recorded_
                   ? " " + std::to_string(last_recorded_)
                   : "s " + std::to_string(steps_->first) + " to " + std::to_string(last_recorded_)) +
              ": " + path + " (open it in ui.perfetto.dev or chrome://tracing, or with zerotrain report)");
}

}  // namespace zt
