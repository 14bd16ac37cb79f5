#include "device/cpu/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <exception>
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

  // A round of work. The caller fills these in, then raises `generation`, which publishes them; the workers
  // answer by counting `busy` down to 0.
  std::int64_t tasks = 0;
  const std::function<void(std::int64_t, int)>* function = nullptr;
  std::exception_ptr error;  // of the first task that threw; written by the thread that sets `failed`

  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::int64_t> next_task{0};
  alignas(64) std::atomic<std::int32_t> busy{0};
  std::atomic<bool> failed{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;

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

  void work(int worker) {
    try {
      for (;;) {
        const std::int64_t task = next_task.fetch_add(1, std::memory_order_relaxed);
        if (task >= tasks) return;
        (*function)(task, worker);
      }
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
      next_task.store(tasks, std::memory_order_relaxed);  // what has not begun is not begun any more
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
      if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) busy.notify_one();
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
  state.tasks = tasks;
  state.function = &function;
  state.error = nullptr;
  state.failed.store(false, std::memory_order_relaxed);
  state.next_task.store(0, std::memory_order_relaxed);
  state.busy.store(state.thread_count - 1, std::memory_order_relaxed);
  state.generation.fetch_add(1, std::memory_order_release);
  state.generation.notify_all();
  state.work(0);
  for (std::int32_t left = state.busy.load(std::memory_order_acquire); left != 0;
       left = state.busy.load(std::memory_order_acquire)) {
    state.wait_while_equal(state.busy, left);
  }
  if (state.failed.load(std::memory_order_relaxed)) std::rethrow_exception(state.error);
}

}  // namespace zt::cpu
