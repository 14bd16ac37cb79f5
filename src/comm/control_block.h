// Memory that the ranks of one machine share to find each other: who has arrived at and who has finished which
// collective, a small area per rank for host values, and the record of the first failure.
//
// It lies in plain memory for ranks that are threads and in shared memory for processes; only lock-free atomics
// synchronise, and waiting is by futex on them (std::atomic::wait would use futexes private to a process).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "device/device.h"

namespace zt {

// Collectives are numbered per lane: one lane for each stream, since the work of different streams may run in
// another order than it was asked for, and one for host values.
constexpr int host_lane = stream_count;
constexpr int lane_count = stream_count + 1;

// The first failure.
struct Failure {
  int rank = 0;
  int exit_code = 1;
  std::string message;
};

class ControlBlock {
 public:
  static constexpr std::int64_t area_bytes = 32768;
  static std::int64_t bytes_for(int slots);
  // Makes the objects in zeroed memory of bytes_for(slots), aligned to 64. One rank does it, before the others look.
  static void create(std::byte* memory, int slots);

  // may_spin: there is a core for each rank, so that waiting a few microseconds awake harms nobody.
  ControlBlock(std::shared_ptr<std::byte> memory, int slots, bool may_spin);

  // Rank `rank` of the world lives in `slot`; process 0: as a thread of this process, whose life is not watched.
  void attach(int slot, int rank, int process);
  // Says that the rank makes no more calls: who still waits for it waits in vain.
  void leave(int slot) noexcept;
  // Said by a rank that has done all it had to do, just before its process ends.
  void set_done(int slot) noexcept;
  bool is_done(int slot) const;

  enum class Progress : std::uint8_t { arrived, finished };
  void signal(int slot, Progress what, int lane, std::int64_t number);
  // Returns when the slot has signalled `number` or a later one. Throws PeerFailed if it never will.
  void wait(int slot, Progress what, int lane, std::int64_t number);
  std::byte* area(int slot) const;

  // True if the slot's rank has left or its process has ended. It may have signalled all the same: look at what
  // is waited for after this, then decide.
  bool is_gone(int slot) const;
  [[noreturn]] void throw_gone(int slot) const;  // the recorded failure instead, if there is one
  void throw_if_failed() const;

  // The first failure is kept. Returns whether this was it; then `announce` has been called before any other rank
  // could learn of the failure, and end because of it.
  bool record_failure(const Failure& failure, const std::function<void(const Failure&)>& announce = {}) noexcept;
  std::optional<Failure> failure() const;
  // What a rank saw that lost a peer without knowing why: of interest only if nobody knows better.
  bool record_notice(const Failure& notice) noexcept;
  std::optional<Failure> notice() const;

  int slots() const { return slots_; }

 private:
  struct Record;
  struct Slot;
  struct Header;
  Header& header() const;
  Slot& slot(int index) const;
  std::atomic<std::uint32_t>& word(int slot, Progress what, int lane) const;

  std::shared_ptr<std::byte> memory_;
  int slots_;
  bool may_spin_;
};

}  // namespace zt
