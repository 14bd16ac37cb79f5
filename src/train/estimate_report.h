// Estimates as tables of at most 80 columns, and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "train/estimate.h"
#include "train/step_time.h"

namespace zt {

struct EstimateRow {
  Plan plan;  // its operations are not needed
  // Of a config; of a bare number of parameters none of these:
  BatchSettings batch{};
  bool own_batch = true;  // the config's batch can be dealt to so many ranks; else it is the nearest that can
  std::optional<ActivationBytes> activations{};
  std::optional<StepTime> time{};
  std::int64_t positions = 0;  // tokens (a GPT) or rows of a step, over all ranks
  bool counts_tokens = false;
  // With a memory to fill:
  std::optional<double> largest_parameters{};  // none: nothing fits
  std::optional<LargestModel> largest{};
};

std::string short_bytes(std::int64_t bytes);  // "1.25G", powers of 1000
std::string short_seconds(double seconds);    // "1.25 s", "85.0 ms", "12.0 us"

// Rows of the same number of ranks stand together.
std::vector<std::string> state_table(const std::vector<EstimateRow>& rows);   // of a bare number of parameters
std::vector<std::string> memory_table(const std::vector<EstimateRow>& rows);  // of a config
std::vector<std::string> largest_table(const std::vector<EstimateRow>& rows, std::int64_t memory);
std::vector<std::string> time_table(const std::vector<EstimateRow>& rows);

// `memory`: rows say what fits it.
nlohmann::ordered_json estimate_json(const std::vector<EstimateRow>& rows, bool with_largest);

}  // namespace zt
