// Stopping by signal: the first SIGINT, SIGTERM, SIGUSR1 or SIGHUP lets the step end, a second one ends the process at
// once. A second SIGHUP does not, nor one beside another signal: when a terminal goes, the kernel and the shell each
// send it, and systemd sends it together with SIGTERM. Where it was ignored at the start (nohup), it stays so.
#pragma once

#include <vector>

namespace zt {

std::vector<int> stop_signals();  // SIGHUP only where it is not ignored

// Once in a process, before it has other threads: those that are started later leave the signals alone.
void watch_stop_signals();
// The same for what has no step to end: the first one ends the process at once with 128 + signal, and what has been
// written under a temporary name is removed (core/unfinished.h). Signals that were ignored at the start stay so.
void end_at_stop_signals();
// The calling thread no longer receives them, to the end of the process: for one that only starts the ranks and takes
// them by sigwait. One more that comes while it reports how the ranks ended must not end it with another status.
void hold_stop_signals();
int stop_signal();  // the first one received, or 0

}  // namespace zt
