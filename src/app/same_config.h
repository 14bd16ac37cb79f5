// Ranks that mpirun starts on several hosts each read the config for themselves: files may differ.
#pragma once

#include "comm/communicator.h"
#include "config/resolve.h"

namespace zt {

// All ranks call it. UserError (PeerFailed on ranks but the first) if a rank has resolved another config than rank 0:
// names ranks, keys and both values.
void require_same_config(Communicator& communicator, const ResolvedConfig& config);

}  // namespace zt
