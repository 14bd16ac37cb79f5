// What a run has left, read again: metrics.jsonl, summary.json and config.resolved.json (docs/outputs.md).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "report/traced_step.h"

namespace zt {

constexpr double not_recorded = std::numeric_limits<double>::quiet_NaN();

// A step, attempted and perhaps skipped. A number that was not finite is infinite or not a number here, too.
struct RecordedStep {
  std::int64_t step = 0;
  double loss = not_recorded, grad_norm = not_recorded, learning_rate = not_recorded, loss_scale = not_recorded;
  double seconds = not_recorded;
  double rate = not_recorded;  // tokens or samples a second, all ranks together
  bool skipped = false;
};

struct RecordedEvaluation {
  std::int64_t step = 0;
  double loss = not_recorded;
};

struct RecordedRun {
  std::string path;                   // of its directory
  std::string name;                   // short, no other of a report's runs has it
  std::vector<RecordedStep> steps{};  // ascending, each once: of a resumed run those that it ended with
  std::vector<RecordedEvaluation> evaluations{};
  std::vector<std::int64_t> resumes{};  // steps attempted before each, of those that the last steps follow from
  bool counts_tokens = false;           // rates are of tokens, or else of samples
  std::int64_t unreadable_lines = 0;    // of metrics.jsonl, but for a last one that is cut off
  bool last_line_cut = false;           // somebody is writing it, or was killed in the middle of it
  nlohmann::ordered_json summary{};     // null: there is none
  nlohmann::ordered_json config{};      // null: there is none
  std::optional<TracedStep> traced{};   // of its trace.json
  std::vector<std::string> remarks{};   // what could not be read, in sentences
};

// `path`: a run's directory, or one of the files in it. UserError where there is no run or it has no step.
RecordedRun read_run(const std::string& path);
// The same of several, with names that tell them apart. UserError if one is given twice.
std::vector<RecordedRun> read_runs(const std::vector<std::string>& paths);

// What stands at "memory.ranks" and the like; null: nothing.
const nlohmann::ordered_json* find_value(const nlohmann::ordered_json& json, std::string_view path);
std::optional<double> find_number(const nlohmann::ordered_json& json, std::string_view path);
std::string find_text(const nlohmann::ordered_json& json, std::string_view path);  // empty: there is none

}  // namespace zt
