// Stopping by signal: the first SIGINT, SIGTERM or SIGUSR1 lets the step end, the second ends the process at once.
#pragma once

namespace zt {

// Once in a process, before it has other threads: those that are started later leave the signals alone.
void watch_stop_signals();
int stop_signal();  // the first one received, or 0

}  // namespace zt
