// What "auto" leaves to the memory (ResolvedConfig::left_open), chosen: the cheapest stage, micro-batch and
// recomputation whose plan fits.
#pragma once

#include <cstdint>
#include <functional>

#include "app/planning.h"
#include "comm/communicator.h"
#include "train/fit.h"

namespace zt {

// The settings with the least that may be chosen, to be checked for sizes beyond any machine.
Settings least_settings(const ResolvedConfig& config);

// The plan of a config whose stage, micro-batch and recomputation are set; settles it first.
using PlanOfConfig = std::function<Plan(ResolvedConfig& config)>;

// All that may be chosen for `open`, which `source` resolves to for so many ranks. UserError if not even the least is
// within what a machine can have.
Fit fit_memory(const ConfigSource& source, int ranks, const ResolvedConfig& open, std::int64_t memory,
               const PlanOfConfig& plan);

// The config with what was chosen, which its notices tell. UserError if nothing fits.
ResolvedConfig resolve_fitted(const ConfigSource& source, int ranks, const ResolvedConfig& open, const Fit& fit);

// Bytes that each rank may take: device.memory_limit, or so many of what is free here that a run will still find them
// free when it takes them. For one process that looks ahead (all `ranks` on this machine), and for the ranks of a run,
// of which all call it and get the least among them.
std::int64_t memory_of_a_rank(const ResolvedConfig& config, int ranks, const ComputeChoice& choice);
std::int64_t memory_of_a_rank(const ResolvedConfig& config, Communicator& communicator);

// For the ranks of a run, of which all call it and get the same config. Errors: the same on all ranks.
ResolvedConfig choose_together(const ConfigSource& source, const ResolvedConfig& open, std::int64_t vocab_size,
                               Communicator& communicator);

// For one process that looks ahead.
ResolvedConfig choose_here(const ConfigSource& source, const ResolvedConfig& open, std::int64_t vocab_size, int ranks);

}  // namespace zt
