#include "device/cpu/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <exception>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/cpu/openmp.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zt::cpu {
namespace {

// About 20 microseconds of looking before a thread goes to sleep: longer than the gap between two operations,
// shorter than what anybody would notice.
constexpr int spin_rounds = 1000;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

int cores_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

// Threads of all pools of the process: ranks may be threads, and spinning helps only while every thread can have
// a core of its own.
std::atomic<int> threads_of_process{0};

}  // namespace

struct ThreadPool::State {
  explicit State(int threads) : thread_count(threads) {}

  const int thread_count;
  bool may_spin = false;

  // A round of work. `ticket` holds the round's number (upper 32 bits) and how many of its tasks nobody has taken; a
  // task is taken by counting it down. Who succeeds in that knows that the round was going on all the time since it
  // read the ticket, so that the function and the count which it read in between are the round's. A worker that wakes
  // late finds nothing to take and holds nobody up: the caller waits for tasks, not for workers.
  std::atomic<std::int64_t> tasks{0};
  std::atomic<const std::function<void(std::int64_t, int)>*> function{nullptr};
  std::exception_ptr error;  // of the first task that threw; written by the thread that sets `failed`

  alignas(64) std::atomic<std::uint64_t> ticket{0};
  alignas(64) std::atomic<std::int32_t> done{0};         // tasks that have run, or never will as another one threw
  alignas(64) std::atomic<std::uint32_t> generation{0};  // what workers sleep on
  std::atomic<bool> failed{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;

  static std::uint32_t untaken(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

  template <typename T>
  void wait_while_equal(const std::atomic<T>& value, T old) const {
    if (may_spin) {
      for (int round = 0; round < spin_rounds; ++round) {
        if (value.load(std::memory_order_acquire) != old) return;
        pause_briefly();
      }
    }
    value.wait(old, std::memory_order_acquire);
  }

  void count_done(std::int64_t finished, std::int64_t all) {
    const auto before = done.fetch_add(static_cast<std::int32_t>(finished), std::memory_order_acq_rel);
    if (before + finished == all) done.notify_one();
  }

  // Runs tasks until there are none to take.
  void work(int worker) {
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while (untaken(seen) != 0) {
      const std::int64_t all = tasks.load(std::memory_order_relaxed);
      const auto* const call = function.load(std::memory_order_relaxed);
      if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      std::int64_t finished = 1;
      try {
        (*call)(all - untaken(seen), worker);
      } catch (...) {
        if (!failed.exchange(true, std::memory_order_acq_rel)) error = std::current_exception();
        // What has not begun is not begun any more.
        std::uint64_t rest = ticket.load(std::memory_order_acquire);
        while (!ticket.compare_exchange_weak(rest, rest - untaken(rest), std::memory_order_acq_rel)) continue;
        finished += untaken(rest);
      }
      count_done(finished, all);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void worker_loop(int worker) {
    make_openmp_serial();
    std::uint32_t seen = 0;
    for (;;) {
      wait_while_equal(generation, seen);
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      work(worker);
    }
  }

  void end_workers() {
    stop.store(true, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
    for (std::thread& thread : workers) thread.join();
    workers.clear();
  }
};

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) throw std::invalid_argument("a thread pool needs at least one thread");
  make_openmp_serial();
  state_ = std::make_unique<State>(threads);
  state_->may_spin = threads_of_process.fetch_add(threads) + threads <= cores_allowed();
  try {
    for (int worker = 1; worker < threads; ++worker) {
      state_->workers.emplace_back([state = state_.get(), worker] { state->worker_loop(worker); });
    }
  } catch (...) {
    state_->end_workers();
    threads_of_process.fetch_sub(threads);
    throw;
  }
}

ThreadPool::~ThreadPool() {
  state_->end_workers();
  threads_of_process.fetch_sub(state_->thread_count);
}

int ThreadPool::threads() const { return state_->thread_count; }

void ThreadPool::for_each(std::int64_t tasks, const std::function<void(std::int64_t, int)>& function) {
  make_openmp_serial();
  State& state = *state_;
  if (tasks <= 1 || state.thread_count == 1) {
    for (std::int64_t task = 0; task < tasks; ++task) function(task, 0);
    return;
  }
  if (tasks > std::numeric_limits<std::int32_t>::max()) throw std::invalid_argument("too many tasks");
  state.error = nullptr;
  state.failed.store(false, std::memory_order_relaxed);
  state.done.store(0, std::memory_order_relaxed);
  state.tasks.store(tasks, std::memory_order_relaxed);
  state.function.store(&function, std::memory_order_relaxed);
  const std::uint64_t round = (state.ticket.load(std::memory_order_relaxed) >> 32) + 1;
  state.ticket.store(round << 32 | static_cast<std::uint64_t>(tasks), std::memory_order_release);
  state.generation.fetch_add(1, std::memory_order_release);
  state.generation.notify_all();
  state.work(0);
  for (std::int32_t done = state.done.load(std::memory_order_acquire); done != tasks;
       done = state.done.load(std::memory_order_acquire)) {
    state.wait_while_equal(state.done, done);
  }
  if (state.failed.load(std::memory_order_acquire)) std::rethrow_exception(state.error);
}

}  // namespace zt::cpu
