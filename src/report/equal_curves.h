// Which of several runs have the same curve: the same numbers at every step that they have in common.
#pragma once

#include <string>
#include <vector>

#include "report/recorded_run.h"

namespace zt {

struct CurveDifference {
  std::int64_t step = 0;
  std::string what{};  // "loss"
  double first = 0.0, second = 0.0;
};

struct CurveComparison {
  std::int64_t common_steps = 0;  // until they part, if they do
  std::optional<CurveDifference> difference{};
  bool same() const { return common_steps > 0 && !difference; }
};

// Loss, gradient norm, loss scale and whether it was skipped, step by step.
CurveComparison compare_curves(const RecordedRun& first, const RecordedRun& second);

// Runs by curve: each list holds indices of runs that agree with its first one.
std::vector<std::vector<std::size_t>> runs_by_curve(const std::vector<RecordedRun>& runs);

// What is to be said of it; nothing for one run.
std::vector<std::string> equality_in_words(const std::vector<RecordedRun>& runs);

}  // namespace zt
