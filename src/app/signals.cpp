#include "app/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace zt {

namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int signal) {
  int none = 0;
  if (!received.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
}

}  // namespace

void watch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
}

int stop_signal() { return received.load(); }

}  // namespace zt
