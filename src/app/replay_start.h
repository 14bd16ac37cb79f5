// From where, and by which config, a step of a run is computed again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/json.h"

namespace zt {

struct ReplayStart {
  std::string checkpoint;         // empty: the beginning
  nlohmann::ordered_json config;  // resolved: the one that the step ran with
  bool config_is_known = true;    // false: no file tells it any more, and this is the nearest that is known
  // Of the training data: what the step ran with, as far as a checkpoint tells; and before the part that it is in.
  std::optional<std::int64_t> samples, samples_before;
  nlohmann::ordered_json record;  // what metrics.jsonl has of the step; null: nothing
  std::string else_possible;      // a sentence: which steps of the run can be replayed
  std::string notice;             // about metrics.jsonl; empty: none
};

// A run that was resumed consists of parts, each of which went on from a checkpoint by a config of its own. The step is
// computed from the newest checkpoint of its part before it, or from the one that the part went on from; where that is
// gone, from the part before, if its config is the same. UserError where the run has no such step, or where what it
// went on from is gone: says what is left. RunError where a file is damaged.
ReplayStart find_replay_start(const std::string& run, std::int64_t step);

}  // namespace zt
