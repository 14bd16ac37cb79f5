// Configs as this machine resolves them, and the plans of their runs.
#pragma once

#include <string>
#include <vector>

#include "app/resolve_options.h"
#include "config/resolve.h"
#include "data/source.h"
#include "train/compute.h"
#include "train/plan.h"

namespace zt {

struct ConfigSource {
  std::vector<std::string> configs, sets;  // files, and KEY.PATH=VALUE after them
  ResolveOptions options = resolve_options_here();
};

ResolvedConfig resolve_here(const ConfigSource& source, int world_size);

// Values that a run finds out for itself, as this process would choose them for a world of `ranks`. `vocab_size`: of
// the data; 0: as the config says.
void settle_here(ResolvedConfig& config, std::int64_t vocab_size, int ranks, const ComputeChoice& choice);

// The plan of a settled config's run, as rank 0 of `ranks` ranks makes it.
Plan plan_here(const Settings& settings, int ranks, const ComputeChoice& choice);

}  // namespace zt
