#include "comm/control_block.h"

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>

#include "core/errors.h"

namespace zt {
namespace {

using Word = std::atomic<std::uint32_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 4);

constexpr int look_up_milliseconds = 100;  // how often a waiting rank looks whether its peers still live
constexpr int spins = 2000;                // some tens of microseconds

// Returns false when the time is over. The word may have changed or not in either case.
bool futex_wait(const Word& word, std::uint32_t expected) {
  timespec timeout{};
  timeout.tv_nsec = look_up_milliseconds * 1'000'000L;
  const long result = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

void futex_wake(const Word& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// Numbers are compared modulo 2^32.
bool reached(std::uint32_t value, std::uint32_t wanted) { return static_cast<std::int32_t>(value - wanted) >= 0; }

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A process that has ended but is not yet reaped counts as ended.
bool process_has_ended(int process) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (fd < 0) return errno == ESRCH || (kill(process, 0) != 0 && errno == ESRCH);
  pollfd entry{fd, POLLIN, 0};
  const bool ended = poll(&entry, 1, 0) > 0 && (entry.revents & POLLIN) != 0;
  close(fd);
  return ended;
}

}  // namespace

struct ControlBlock::Record {
  enum : std::uint32_t { empty, being_written, written };
  std::atomic<std::uint32_t> state;
  std::int32_t rank;
  std::int32_t exit_code;
  char message[8192];

  bool write(const Failure& failure, const std::function<void(const Failure&)>& announce) noexcept {
    std::uint32_t expected = empty;
    if (!state.compare_exchange_strong(expected, being_written)) return false;
    if (announce) announce(failure);
    rank = failure.rank;
    exit_code = failure.exit_code;
    const std::size_t length = std::min(failure.message.size(), sizeof(message) - 1);
    std::memcpy(message, failure.message.data(), length);
    message[length] = '\0';
    state.store(written);
    return true;
  }
  bool there() const { return state.load() == written; }
  std::optional<Failure> read() const {
    if (!there()) return std::nullopt;
    return Failure{rank, exit_code, message};
  }
};

struct alignas(64) ControlBlock::Slot {
  struct alignas(64) Lane {
    Word arrived, finished;
  };
  Lane lanes[lane_count];
  std::atomic<std::uint32_t> waiters;  // ranks asleep on a word of this slot
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> done;
  std::atomic<std::int32_t> rank;
  std::atomic<std::int32_t> process;
};

struct alignas(64) ControlBlock::Header {
  Record failure;
  Record notice;
};

std::int64_t ControlBlock::bytes_for(int slots) {
  return static_cast<std::int64_t>(sizeof(Header)) + slots * (static_cast<std::int64_t>(sizeof(Slot)) + area_bytes);
}

void ControlBlock::create(std::byte* memory, int slots) {
  new (memory) Header();
  for (int i = 0; i < slots; ++i) new (memory + sizeof(Header) + static_cast<std::size_t>(i) * sizeof(Slot)) Slot();
}

ControlBlock::ControlBlock(std::shared_ptr<std::byte> memory, int slots, bool may_spin)
    : memory_(std::move(memory)), slots_(slots), may_spin_(may_spin) {}

ControlBlock::Header& ControlBlock::header() const { return *std::launder(reinterpret_cast<Header*>(memory_.get())); }

ControlBlock::Slot& ControlBlock::slot(int index) const {
  return *std::launder(
      reinterpret_cast<Slot*>(memory_.get() + sizeof(Header) + static_cast<std::size_t>(index) * sizeof(Slot)));
}

std::byte* ControlBlock::area(int index) const {
  return memory_.get() + sizeof(Header) + static_cast<std::size_t>(slots_) * sizeof(Slot) + index * area_bytes;
}

Word& ControlBlock::word(int index, Progress what, int lane) const {
  Slot::Lane& words = slot(index).lanes[lane];
  return what == Progress::arrived ? words.arrived : words.finished;
}

void ControlBlock::attach(int index, int rank, int process) {
  slot(index).rank.store(rank);
  slot(index).process.store(process);
}

void ControlBlock::leave(int index) noexcept {
  slot(index).left.store(1);
  if (slot(index).waiters.load() == 0) return;
  for (Slot::Lane& lane : slot(index).lanes) {
    futex_wake(lane.arrived);
    futex_wake(lane.finished);
  }
}

void ControlBlock::set_done(int index) noexcept { slot(index).done.store(1); }
bool ControlBlock::is_done(int index) const { return slot(index).done.load() != 0; }

void ControlBlock::signal(int index, Progress what, int lane, std::int64_t number) {
  Word& counter = word(index, what, lane);
  // Sequentially consistent with the waiter's increment of `waiters` and load of the counter: one of the two sees
  // the other, so no wake-up is lost.
  counter.store(static_cast<std::uint32_t>(number));
  if (slot(index).waiters.load() != 0) futex_wake(counter);
}

void ControlBlock::wait(int index, Progress what, int lane, std::int64_t number) {
  const Word& counter = word(index, what, lane);
  const auto wanted = static_cast<std::uint32_t>(number);
  if (reached(counter.load(std::memory_order_acquire), wanted)) return;
  for (int i = 0; may_spin_ && i < spins; ++i) {
    pause_briefly();
    if (reached(counter.load(std::memory_order_acquire), wanted)) return;
  }
  Slot& peer = slot(index);
  for (bool in_time = true;;) {
    const bool gone = in_time ? peer.left.load() != 0 : is_gone(index);
    peer.waiters.fetch_add(1);
    const std::uint32_t now = counter.load();
    if (!reached(now, wanted) && !gone && !header().failure.there()) {
      in_time = futex_wait(counter, now);
    }
    peer.waiters.fetch_sub(1);
    if (reached(counter.load(), wanted)) return;
    if (gone) throw_gone(index);
    throw_if_failed();
  }
}

bool ControlBlock::is_gone(int index) const {
  const Slot& peer = slot(index);
  if (peer.left.load() != 0) return true;
  const int process = peer.process.load();
  return process != 0 && process_has_ended(process);
}

void ControlBlock::throw_gone(int index) const {
  throw_if_failed();
  const int rank = slot(index).rank.load();
  const int process = slot(index).process.load();
  std::string who = "rank " + std::to_string(rank);
  if (process != 0) who += " (process " + std::to_string(process) + ")";
  throw PeerFailed(rank, who + " ended while other ranks still waited for it");
}

void ControlBlock::throw_if_failed() const {
  if (const auto failure = header().failure.read()) throw PeerFailed(failure->rank, failure->message);
}

bool ControlBlock::record_failure(const Failure& failure,
                                  const std::function<void(const Failure&)>& announce) noexcept {
  if (!header().failure.write(failure, announce)) return false;
  for (int i = 0; i < slots_; ++i) {
    if (slot(i).waiters.load() == 0) continue;
    for (Slot::Lane& lane : slot(i).lanes) {
      futex_wake(lane.arrived);
      futex_wake(lane.finished);
    }
  }
  return true;
}

std::optional<Failure> ControlBlock::failure() const { return header().failure.read(); }
bool ControlBlock::record_notice(const Failure& notice) noexcept { return header().notice.write(notice, {}); }
std::optional<Failure> ControlBlock::notice() const { return header().notice.read(); }

}  // namespace zt
