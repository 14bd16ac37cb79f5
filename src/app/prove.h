// The verb `prove`: a config's own curve at several numbers of ranks and stages, side by side.
#pragma once

#include <vector>

#include "config/resolve.h"

namespace zt {

// Runs `steps` steps for every combination, with the same micro-batch and global batch, and prints a table of losses
// and checksums to stdout. `config`: resolved for one rank. Returns 0, or 1 if a row differs from the first. Writes no
// files.
int prove(ResolvedConfig config, const std::vector<int>& ranks, const std::vector<int>& stages, int steps, bool json);

}  // namespace zt
