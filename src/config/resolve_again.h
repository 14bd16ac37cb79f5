// A config that was resolved once, from a run's files, for another number of ranks.
#pragma once

#include <string>
#include <vector>

#include "config/resolve.h"

namespace zt {

// The micro-batches of the run stay the same ones. `sets` come on top, as KEY.PATH=VALUE. ConfigError.
ResolvedConfig resolve_again(const Json& resolved, int world_size, const std::vector<std::string>& sets = {},
                             ResolveOptions options = {});

// The batch that a resolved config names; RunError where it names none (`origin`: whose config it is).
ResumedBatch batch_of(const Json& resolved, const std::string& origin);

}  // namespace zt
