// Starts the ranks of one machine: `zerotrain --ranks N`.
//
// How main() uses it, before any thread, before oneDNN or MPI, and with the config already checked:
//
//   if (ranks > 1) {
//     return launch_local_ranks({.ranks = ranks, .ranks_per_node = n}, [&](Communicator& c) { return run(config, c);
//     });
//   }
//
// In each child `body` installs its own signal handlers and returns the exit code, or throws: UserError (code 2),
// RunError and other exceptions (code 1) are said once, by the parent, with the rank named; PeerFailed stays silent.
// So `body` neither prints errors nor calls abort() for them. The child then ends by _exit: streams are flushed, but
// destructors of static objects do not run.
#pragma once

#include <functional>

#include "comm/communicator.h"

namespace zt {

struct LaunchOptions {
  int ranks = 1;
  int ranks_per_node = 0;       // 0: one node; else nodes of so many ranks are pretended
  double grace_seconds = 5.0;   // for the other ranks to end by themselves after a failure
  bool* lost_a_rank = nullptr;  // set: whether one was killed, or ended before it had finished, not asked to
};

// Forks the ranks, gives each its fair part of the allowed cores if there is one for each, forwards the stop
// signals (app/signals.h) to them (they are in process groups of their own: what a terminal sends to its foreground
// group reaches them once), waits, and returns the exit code of the whole:
//   a rank killed by a signal, or ended without having returned from `body`: 1, and the others are stopped
//   a rank that failed: its code (that of the first, if several did)
//   after a forwarded signal: 128 + signal, where the ranks return or die with that
//   otherwise the largest code of all.
// When the parent is killed, the children are.
int launch_local_ranks(const LaunchOptions& options, const std::function<int(Communicator&)>& body);

inline int launch_local_ranks(int ranks, const std::function<int(Communicator&)>& body) {
  return launch_local_ranks(LaunchOptions{.ranks = ranks}, body);
}

}  // namespace zt
