// Ranks as threads of this process: nothing is process-global, so several such worlds may live side by side.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace zt {

// Runs `body` once per rank, each on a thread of its own, and returns when all have ended. The first exception of a
// rank makes the waits of the others throw PeerFailed and is rethrown here.
// ranks_per_node > 0: every so many ranks are made to look like a node of their own; what crosses nodes then takes
// the way through a transport.
void run_ranks_as_threads(int ranks, int ranks_per_node, const std::function<void(Communicator&)>& body);

}  // namespace zt
