// The blocks of text at the start and the end of a run, and the tables of a dry run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/settings.h"
#include "train/plan.h"

namespace zt {

// Model, batch rule, stage, precision, device, memory by category beside the formula: lines.
std::vector<std::string> start_block(const Settings& settings, const Plan& plan, const std::string& device,
                                     const std::string& communicator, const std::string& data, std::int64_t samples);

// What --dry-run prints: the layout, memory by category, communication.
std::vector<std::string> plan_tables(const Settings& settings, const Plan& plan);

// From summary.json: loss, throughput, memory, communication beside the formula, files.
std::vector<std::string> closing_block(const nlohmann::ordered_json& summary, const std::string& output_dir);

}  // namespace zt
