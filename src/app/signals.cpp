#include "app/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "core/unfinished.h"

namespace zt {

namespace {

std::atomic<int> received{0};

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t set_of(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// `most`: how many signals other than SIGHUP may come; at one more, and with 0 at any, the process ends.
void wait_for_signals(sigset_t set, int most) {
  for (int count = 0;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    int none = 0;
    received.compare_exchange_strong(none, signal);
    if (signal != SIGHUP) ++count;
    if (count <= most && most > 0) continue;
    remove_unfinished();
    ::_exit(128 + signal);
  }
}

// A thread of its own waits for them and every other thread has them blocked. A handler would not do: products run in
// generated code that may use the stack pointer for something else, and the kernel would write the handler's frame
// there (with oneDNN 2.6 on AVX2 it wrote over the heap).
void start_waiting(const std::vector<int>& signals, int most) {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_signals, set, most).detach();
}

}  // namespace

std::vector<int> stop_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGUSR1};
  if (!is_ignored(SIGHUP)) signals.push_back(SIGHUP);
  return signals;
}

void watch_stop_signals() {
  const std::vector<int> signals = stop_signals();
  // Shells start background programs with SIGINT ignored; what is ignored cannot be waited for.
  for (const int signal : signals) ::signal(signal, SIG_DFL);
  start_waiting(signals, 1);
}

void end_at_stop_signals() {
  std::vector<int> signals = stop_signals();
  std::erase_if(signals, is_ignored);
  start_waiting(signals, 0);
}

void hold_stop_signals() {
  const sigset_t set = set_of(stop_signals());
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int stop_signal() { return received.load(); }

}  // namespace zt
