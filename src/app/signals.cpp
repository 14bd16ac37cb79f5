#include "app/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace zt {

namespace {

std::atomic<int> received{0};

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

void wait_for_signals() {
  const sigset_t set = stop_set();
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    int none = 0;
    if (!received.compare_exchange_strong(none, signal)) ::_exit(128 + signal);
  }
}

}  // namespace

// A thread of its own waits for them and every other thread has them blocked. A handler would not do: products run in
// generated code that may use the stack pointer for something else, and the kernel would write the handler's frame
// there (with oneDNN 2.6 on AVX2 it wrote over the heap).
void watch_stop_signals() {
  hold_stop_signals();
  // Shells start background programs with SIGINT ignored; what is ignored cannot be waited for.
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::signal(signal, SIG_DFL);
  std::thread(wait_for_signals).detach();
}

void hold_stop_signals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int stop_signal() { return received.load(); }

}  // namespace zt
