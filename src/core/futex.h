// Sleeping on a 32-bit word of this process, as std::atomic's wait() and notify_all() do, but whoever wakes can see for
// himself whether anybody sleeps, and then makes no system call.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace zt {

// One word that changes, and those who sleep until it does.
class SleepWord {
 public:
  std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  // For the owner, while nobody waits.
  void reset(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  // Adds and wakes those who sleep. Returns what the word holds now.
  std::uint32_t add(std::uint32_t amount) {
    const std::uint32_t now = value_.fetch_add(amount, std::memory_order_seq_cst) + amount;
    wake();
    return now;
  }
  // The same without waking, for those whose change nobody waits for.
  std::uint32_t add_silently(std::uint32_t amount) {
    return value_.fetch_add(amount, std::memory_order_seq_cst) + amount;
  }
  // Sequentially consistent with the sleeper's increment of `sleepers_` and its look at the word: one of the two sees
  // the other, so that no wake-up is lost.
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  // Returns when the word may differ from `old`, or when so much time is over; 0: no limit.
  void sleep_while(std::uint32_t old, std::chrono::milliseconds longest = {}) const {
    timespec limit{};
    limit.tv_sec = static_cast<std::time_t>(longest.count() / 1000);
    limit.tv_nsec = static_cast<long>(longest.count() % 1000 * 1'000'000);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (value_.load(std::memory_order_seq_cst) == old)
      syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, longest.count() > 0 ? &limit : nullptr, nullptr, 0);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
  std::atomic<std::uint32_t> value_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace zt
