#include "machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "emulation_state.h"
#include "sanitizer.h"

namespace zt::emulation {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr unsigned char guard_value = 0xa5;

// A random permutation of 0 to count - 1, a function of `seed`.
void shuffle(std::vector<int>& numbers, int count, std::uint64_t seed) {
  numbers.resize(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[mix(seed + i) % i]);
}

}  // namespace

Machine::Machine() : shared_memory_(new unsigned char[largest_shared_bytes + 128 + guard_bytes]) {
  shared_ = reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(shared_memory_.get()) + 127) &
                                             ~std::uintptr_t{127});
}

Machine::~Machine() { unpoison(shared_, largest_shared_bytes + guard_bytes); }

void Machine::prepare_shared(std::size_t bytes) {
  shared_bytes_ = bytes;
  unpoison(shared_, largest_shared_bytes + guard_bytes);
  std::memset(shared_, 0xff, bytes);
  std::memset(shared_ + bytes, guard_value, guard_bytes);
  poison(shared_ + bytes, largest_shared_bytes + guard_bytes - bytes);
}

void Machine::check_shared() {
  if (has_address_sanitizer || failed_) return;
  const unsigned char* guard = shared_ + shared_bytes_;
  if (std::any_of(guard, guard + guard_bytes, [](unsigned char value) { return value != guard_value; })) {
    fail("it wrote beyond the " + std::to_string(shared_bytes_) + " bytes of its dynamic shared memory");
  }
}

void Machine::begin_pass() {
  const Settings wanted = settings();
  order_ = static_cast<int>(wanted.order);
  if (wanted.order == Order::shuffled) shuffle(shuffled_, count_, wanted.seed + 0x10000 * ++pass_);
}

int Machine::thread_at(int position) const {
  switch (static_cast<Order>(order_)) {
    case Order::forward: return position;
    case Order::reversed: return count_ - 1 - position;
    case Order::shuffled: break;
  }
  return shuffled_[static_cast<std::size_t>(position)];
}

void Machine::set_running(int thread) {
  running_ = thread;
  const auto t = static_cast<unsigned>(thread);
  const dim3 size = indices.block_size;
  indices.thread = {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
}

void Machine::run_fiber(Fiber& fiber) {
  Machine& self = machine();
  for (;;) {
    do {
      try {
        (*self.kernel_)();
      } catch (const Abandoned&) {
      }
      Thread& thread = self.threads_[static_cast<std::size_t>(fiber.thread)];
      thread.state = State::done;
      thread.fiber = nullptr;
      ++self.done_;
      if (!self.failed_) self.release_barrier_if_complete();
    } while (!self.failed_ && self.take_next(fiber));
    self.idle_.push_back(&fiber);
    fiber.suspend();
  }
}

// A fiber whose thread has ended goes on with the next one that has not begun, which saves the switch.
bool Machine::take_next(Fiber& fiber) {
  if (position_ + 1 >= count_) return false;
  const int next = thread_at(position_ + 1);
  Thread& thread = threads_[static_cast<std::size_t>(next)];
  if (thread.state != State::unstarted) return false;
  ++position_;
  thread.state = State::ready;
  thread.fiber = &fiber;
  fiber.thread = next;
  set_running(next);
  return true;
}

void Machine::resume(int number) {
  Thread& thread = threads_[static_cast<std::size_t>(number)];
  if (thread.fiber == nullptr) {
    if (idle_.empty()) {
      idle_.push_back(fibers_.emplace_back(std::make_unique<Fiber>(&Machine::run_fiber, fibers_.size())).get());
    }
    thread.fiber = idle_.back();
    idle_.pop_back();
    thread.fiber->thread = number;
    thread.state = State::ready;
  }
  set_running(number);
  thread.fiber->resume();
}

// The threads that wait are let go, to find that the kernel has failed.
void Machine::abandon() {
  for (int number = 0; number < count_; ++number) {
    const Thread& thread = threads_[static_cast<std::size_t>(number)];
    if (thread.fiber != nullptr && thread.state != State::done) resume(number);
  }
}

bool Machine::run_block(const std::function<void()>& kernel, std::size_t shared_bytes) {
  kernel_ = &kernel;
  const dim3 size = indices.block_size;
  count_ = static_cast<int>(size.x * size.y * size.z);
  threads_.resize(static_cast<std::size_t>(count_));
  for (Thread& thread : threads_) {
    thread.state = State::unstarted;
    thread.fiber = nullptr;
    thread.copies.clear();
  }
  meetings_.resize(std::max(meetings_.size(), static_cast<std::size_t>((count_ + warp_size - 1) / warp_size)));
  for (auto& meetings : meetings_) {
    for (auto& meeting : meetings) meeting->arrived = 0;
  }
  done_ = at_barrier_ = barrier_flags_ = 0;
  failed_ = false;
  prepare_shared(shared_bytes);
  while (done_ < count_ && !failed_) {
    bool progress = false;
    begin_pass();
    for (position_ = 0; position_ < count_ && !failed_; ++position_) {
      const int number = thread_at(position_);
      const State state = threads_[static_cast<std::size_t>(number)].state;
      if (state != State::unstarted && state != State::ready) continue;
      progress = true;
      resume(number);
    }
    if (!progress && !failed_) fail("no thread can go on: " + threads_and_places());
  }
  if (failed_) abandon();
  running_ = -1;
  check_shared();
  return !failed_;
}

bool run_grid(const std::function<void()>& kernel, dim3 grid, dim3 block, std::size_t shared_bytes) {
  const Settings wanted = settings();
  const auto blocks = static_cast<int>(grid.x * grid.y * grid.z);
  std::vector<int> shuffled;
  if (wanted.order == Order::shuffled) shuffle(shuffled, blocks, wanted.seed);
  indices.grid_size = grid;
  indices.block_size = block;
  for (int i = 0; i < blocks; ++i) {
    int number = i;
    if (wanted.order == Order::reversed) number = blocks - 1 - i;
    if (wanted.order == Order::shuffled) number = shuffled[static_cast<std::size_t>(i)];
    const auto n = static_cast<unsigned>(number);
    indices.block = {n % grid.x, n / grid.x % grid.y, n / (grid.x * grid.y)};
    if (!machine().run_block(kernel, shared_bytes)) return false;
  }
  return true;
}

}  // namespace zt::emulation
