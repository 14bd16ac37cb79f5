#include "device/cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/futex.h"
#include "device/cpu/openmp.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace zt::cpu {
namespace {

// How long a thread looks before it goes to sleep. Waking it costs as much again; the gaps between the operations of a
// step, in which one thread fetches the next batch or agrees with other ranks, are shorter.
constexpr auto spin_time = std::chrono::microseconds(100);
constexpr int looks_between_clocks = 32;

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
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
  explicit State(int threads) : thread_count(threads), parts(static_cast<std::size_t>(threads)) {}

  const int thread_count;
  bool may_spin = false;

  // A round of work is cut into a part for each worker. A part's ticket holds the round's number (upper 32 bits) and
  // how many of its tasks nobody has taken; a task is taken by counting it down. Who succeeds in that knows that the
  // round was going on all the time since it read the ticket, so that the function and the counts which it read in
  // between are the round's. A worker that wakes late finds nothing to take and holds nobody up: the caller waits for
  // tasks, not for workers.
  struct alignas(64) Part {
    std::atomic<std::uint64_t> ticket{0};
  };
  using Function = FunctionRef<void(std::int64_t, int)>;
  std::atomic<std::int64_t> tasks{0};
  std::atomic<const Function*> function{nullptr};
  std::exception_ptr error;  // of the first task that threw; written by the thread that sets `failed`
  std::uint64_t round = 0;   // of the caller

  std::vector<Part> parts;
  alignas(64) SleepWord done;        // tasks that have run, or never will as another one threw
  alignas(64) SleepWord generation;  // what workers sleep on
  std::atomic<bool> failed{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;

  static std::uint32_t untaken(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket); }
  // Tasks [first_of(w), first_of(w + 1)) are worker w's.
  std::int64_t first_of(int worker, std::int64_t all) const { return all * worker / thread_count; }

  void wait_while_equal(const SleepWord& word, std::uint32_t old) const {
    if (may_spin) {
      const auto start = std::chrono::steady_clock::now();
      do {
        for (int look = 0; look < looks_between_clocks; ++look) {
          if (word.load() != old) return;
          pause_briefly();
        }
      } while (std::chrono::steady_clock::now() - start < spin_time);
    }
    while (word.load() == old) word.sleep_while(old);
  }

  void count_done(std::int64_t finished, std::int64_t all) {
    if (done.add_silently(static_cast<std::uint32_t>(finished)) == static_cast<std::uint32_t>(all)) done.wake();
  }

  // What has not begun is not begun any more. Returns how many tasks these are.
  std::int64_t drop_untaken() {
    std::int64_t dropped = 0;
    for (Part& part : parts) {
      std::uint64_t rest = part.ticket.load(std::memory_order_acquire);
      while (!part.ticket.compare_exchange_weak(rest, rest - untaken(rest), std::memory_order_acq_rel)) continue;
      dropped += untaken(rest);
    }
    return dropped;
  }

  // Runs tasks of one worker's part until there are none to take.
  void work_on(int owner, int worker) {
    std::atomic<std::uint64_t>& ticket = parts[static_cast<std::size_t>(owner)].ticket;
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while (untaken(seen) != 0) {
      const std::int64_t all = tasks.load(std::memory_order_relaxed);
      const Function* const call = function.load(std::memory_order_relaxed);
      if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      std::int64_t finished = 1;
      try {
        (*call)(first_of(owner + 1, all) - untaken(seen), worker);
      } catch (...) {
        if (!failed.exchange(true, std::memory_order_acq_rel)) error = std::current_exception();
        finished += drop_untaken();
      }
      count_done(finished, all);
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void work(int worker) {
    for (int i = 0; i < thread_count; ++i) work_on((worker + i) % thread_count, worker);
  }

  void worker_loop(int worker) {
    make_openmp_serial();
    std::uint32_t seen = 0;
    for (;;) {
      wait_while_equal(generation, seen);
      seen = generation.load();
      if (stop.load(std::memory_order_relaxed)) return;
      work(worker);
    }
  }

  void end_workers() {
    stop.store(true, std::memory_order_relaxed);
    generation.add(1);
    for (std::thread& thread : workers) thread.join();
    workers.clear();
  }
};

ThreadPool::ThreadPool(int threads, int sharing_cores) {
  if (threads < 1) throw std::invalid_argument("a thread pool needs at least one thread");
  make_openmp_serial();
  state_ = std::make_unique<State>(threads);
  const int in_process = threads_of_process.fetch_add(threads) + threads;
  state_->may_spin = static_cast<std::int64_t>(in_process) * std::max(1, sharing_cores) <= cores_allowed();
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
bool ThreadPool::may_spin() const { return state_->may_spin; }

void ThreadPool::for_each(std::int64_t tasks, FunctionRef<void(std::int64_t, int)> function) {
  make_openmp_serial();
  State& state = *state_;
  if (tasks <= 1 || state.thread_count == 1) {
    for (std::int64_t task = 0; task < tasks; ++task) function(task, 0);
    return;
  }
  if (tasks > std::numeric_limits<std::int32_t>::max()) throw std::invalid_argument("too many tasks");
  state.error = nullptr;
  state.failed.store(false, std::memory_order_relaxed);
  state.done.reset(0);
  state.tasks.store(tasks, std::memory_order_relaxed);
  state.function.store(&function, std::memory_order_relaxed);
  ++state.round;
  for (int worker = 0; worker < state.thread_count; ++worker) {
    const std::int64_t count = state.first_of(worker + 1, tasks) - state.first_of(worker, tasks);
    state.parts[static_cast<std::size_t>(worker)].ticket.store(state.round << 32 | static_cast<std::uint64_t>(count),
                                                               std::memory_order_release);
  }
  state.generation.add(1);
  state.work(0);
  const auto all = static_cast<std::uint32_t>(tasks);
  for (std::uint32_t done = state.done.load(); done != all; done = state.done.load()) {
    state.wait_while_equal(state.done, done);
  }
  if (state.failed.load(std::memory_order_acquire)) std::rethrow_exception(state.error);
}

void ThreadPool::on_every_thread(FunctionRef<void(int)> function) {
  // A thread that has a task of these holds it until each has one.
  std::atomic<int> arrived{0};
  for_each(threads(), [&](std::int64_t, int worker) {
    arrived.fetch_add(1, std::memory_order_acq_rel);
    while (arrived.load(std::memory_order_acquire) < threads()) std::this_thread::yield();
    function(worker);
  });
}

}  // namespace zt::cpu
