// The verb `prove`: a config's own curve at several numbers of ranks and stages, side by side.
#pragma once

#include "app/command_line.h"
#include "config/resolve.h"

namespace zt {

// Runs line.steps steps for every combination of line.rank_list and line.stages, with the same micro-batch and global
// batch, and prints a table of losses and checksums to stdout. `config`: resolved for one rank. Returns 0, or 1 if a
// row differs from the first, or holds or sends something else than planned. Writes no files.
int prove(ResolvedConfig config, const CommandLine& line);

}  // namespace zt
