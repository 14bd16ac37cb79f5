// Stopping by signal: the first SIGINT, SIGTERM or SIGUSR1 lets the step end, the second ends the process at once.
#pragma once

namespace zt {

// Once in a process, before it has other threads: those that are started later leave the signals alone.
void watch_stop_signals();
// The calling thread no longer receives them, to the end of the process: for one that only starts the ranks and takes
// them by sigwait. One more that comes while it reports how the ranks ended must not end it with another status.
void hold_stop_signals();
int stop_signal();  // the first one received, or 0

}  // namespace zt
