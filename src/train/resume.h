// What a run that goes on from a checkpoint checks and says.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "checkpoint/resume_point.h"
#include "config/resolve.h"
#include "data/source.h"
#include "train/trainer.h"

namespace zt {

// UserError, with both values, where the config's model or the data's vocabulary is another one than the checkpoint's.
void require_same_model(const Manifest& manifest, const ResolvedConfig& config, const Dataset& dataset);

// Lines for the screen: where the run goes on, what differs since, `missing` moments, checkpoints set `aside`.
std::vector<std::string> resume_lines(const ResumePoint& point, const ResolvedConfig& config, const Dataset& dataset,
                                      const std::vector<std::string>& missing, const std::vector<std::string>& aside,
                                      int world_size);

// The line of metrics.jsonl that marks where a run went on.
nlohmann::ordered_json resume_record(const TrainOptions& options, int world_size, int stage);

// A trace.json of before tells of other steps, and perhaps other ranks, than the run from here on: it gets the ending
// .set-aside. Returns a line for the screen; empty: there is none. RunError.
std::string set_aside_trace(const std::string& directory);

}  // namespace zt
