#include "block.h"

#include <algorithm>
#include <map>
#include <string>

#include "emulation_state.h"
#include "machine.h"
#include "sanitizer.h"

namespace zt::emulation {

thread_local constinit Indices indices = {};

namespace {

std::string text_of(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

std::string ranges_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

Machine& machine() {
  static thread_local Machine instance;
  return instance;
}

std::string Machine::threads_and_places() const {
  std::map<std::string, std::vector<int>> groups;
  for (int t = 0; t < count_; ++t) {
    const Thread& thread = threads_[static_cast<std::size_t>(t)];
    std::string doing = "have ended";
    if (thread.state == State::at_barrier || thread.state == State::in_meeting) {
      doing = std::string("wait in ") + thread.waits_in + " at " + emulation::text_of(thread.where);
    } else if (thread.state != State::done) {
      doing = "run";
    }
    groups[doing].push_back(t);
  }
  std::string text;
  for (const auto& [doing, numbers] : groups) {
    text += (text.empty() ? "threads " : "; threads ") + ranges_of(numbers) + " " + doing;
  }
  return text;
}

void Machine::fail(const std::string& what) {
  failed_ = true;
  report("kernel, block " + text_of(indices.block) + ": " + what);
}

void Machine::fail_on_fiber(const std::string& what) {
  fail(what);
  throw Abandoned();
}

// Until the running thread is ready again.
void Machine::wait(State state) {
  Thread& thread = threads_[static_cast<std::size_t>(running_)];
  if (thread.state == state) thread.fiber->suspend();
  if (failed_) throw Abandoned();
}

void Machine::release_barrier_if_complete() {
  if (at_barrier_ == 0 || at_barrier_ + done_ < count_) return;
  const Thread* first = nullptr;
  for (Thread& thread : threads_) {
    if (thread.state != State::at_barrier) continue;
    if (first == nullptr) first = &thread;
    if (!same_place(first->where, thread.where)) return fail("divergent barrier: " + threads_and_places());
  }
  for (Thread& thread : threads_) {
    if (thread.state == State::at_barrier) thread.state = State::ready;
  }
  barrier_result_ = barrier_flags_;
  barrier_flags_ = at_barrier_ = 0;
}

int Machine::barrier(const char* name, int flag, const std::source_location& where) {
  ++at_barrier_;
  barrier_flags_ += flag;
  Thread& thread = threads_[static_cast<std::size_t>(running_)];
  thread.state = State::at_barrier;
  thread.waits_in = name;
  thread.where = where;
  release_barrier_if_complete();
  wait(State::at_barrier);
  return barrier_result_;
}

Meeting& Machine::meet(const char* name, unsigned mask, const void* payload, std::size_t bytes,
                       const std::source_location& where) {
  const int me = running_;
  const unsigned bit = 1U << (me % warp_size);
  const auto here = [&] { return std::string(name) + " at " + emulation::text_of(where); };
  if ((mask & bit) == 0) {
    fail_on_fiber("thread " + std::to_string(me) + " is not in the mask that it gives to " + here());
  }
  const int lanes = std::min(warp_size, count_ - me / warp_size * warp_size);
  if (lanes < warp_size && (mask >> lanes) != 0) {
    fail_on_fiber("the mask given to " + here() + " names lanes that the block does not have: its last warp has " +
                  std::to_string(lanes));
  }
  auto& meetings = meetings_[static_cast<std::size_t>(me / warp_size)];
  Meeting* mine = nullptr;
  Meeting* unused = nullptr;
  for (const auto& meeting : meetings) {
    const bool gathering = meeting->arrived != 0 && meeting->arrived != meeting->mask;
    if (gathering && (meeting->mask & mask) != 0) mine = meeting.get();
    if (meeting->arrived == 0) unused = meeting.get();
  }
  if (mine != nullptr && (mine->mask != mask || !same_place(mine->where, where))) {
    fail_on_fiber("thread " + std::to_string(me) + " calls " + here() + " with mask " + std::to_string(mask) +
                  ", other lanes of its warp wait in " + mine->name + " at " + emulation::text_of(mine->where) +
                  " with mask " + std::to_string(mine->mask));
  }
  if (mine == nullptr) {
    mine = unused != nullptr ? unused : meetings.emplace_back(std::make_unique<Meeting>()).get();
    mine->mask = mask;
    mine->name = name;
    mine->where = where;
  }
  std::memcpy(mine->payloads[static_cast<std::size_t>(me % warp_size)].data(), payload, bytes);
  mine->arrived |= bit;
  if (mine->arrived != mine->mask) {
    Thread& thread = threads_[static_cast<std::size_t>(me)];
    thread.state = State::in_meeting;
    thread.waits_in = name;
    thread.where = where;
    wait(State::in_meeting);
  } else {
    mine->unread = mask;
    const int first = me / warp_size * warp_size;
    for (int other = 0; other < warp_size; ++other) {
      if (((mask >> other) & 1U) == 0 || first + other == me) continue;
      threads_[static_cast<std::size_t>(first + other)].state = State::ready;
    }
  }
  return *mine;
}

void Machine::leave(Meeting& meeting) {
  meeting.unread &= ~(1U << (running_ % warp_size));
  if (meeting.unread == 0) meeting.arrived = 0;
}

bool in_kernel() { return machine().running() >= 0; }
unsigned char* dynamic_shared() { return machine().shared(); }
int lane() { return machine().running() % warp_size; }
int barrier(const char* name, int flag, const std::source_location& where) {
  return machine().barrier(name, flag, where);
}
Meeting& meet(const char* name, unsigned mask, const void* payload, std::size_t bytes,
              const std::source_location& where) {
  return machine().meet(name, mask, payload, bytes, where);
}
void leave(Meeting& meeting) { machine().leave(meeting); }

void fail_kernel(const std::string& what, const std::source_location& where) {
  machine().fail_on_fiber("thread " + text_of(indices.thread) + " " + what + " at " + text_of(where));
}

void queue_copy(void* shared, const void* global, int valid_bytes, const std::source_location& where) {
  if (reinterpret_cast<std::uintptr_t>(shared) % 16 != 0 || reinterpret_cast<std::uintptr_t>(global) % 16 != 0) {
    fail_kernel("gives cp_async_16 an address that is no multiple of 16", where);
  }
  if (valid_bytes < 0 || valid_bytes > 16) fail_kernel("wants cp_async_16 to copy other than 0 to 16 bytes", where);
  std::memset(shared, 0xff, 16);  // until the copy lands nothing may be read there
  machine().copies().push_back({shared, global, valid_bytes, false});
}

void commit_copies() {
  for (Copy& copy : machine().copies()) copy.groups_after += copy.committed ? 1 : 0;
  for (Copy& copy : machine().copies()) copy.committed = true;
}

void wait_for_copies(int groups_left) {
  auto& copies = machine().copies();
  const auto lands = [&](const Copy& copy) { return copy.committed && copy.groups_after >= groups_left; };
  for (const Copy& copy : copies) {
    if (!lands(copy)) continue;
    std::memset(copy.shared, 0, 16);
    std::memcpy(copy.shared, copy.global, static_cast<std::size_t>(copy.valid_bytes));
  }
  copies.erase(std::remove_if(copies.begin(), copies.end(), lands), copies.end());
}

}  // namespace zt::emulation
