// The scheduler of one OS thread's blocks: the state behind block.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "block.h"
#include "fiber.h"

namespace zt::emulation {

struct Copy {
  void* shared;
  const void* global;
  int valid_bytes;
  bool committed;
  int groups_after = 0;  // committed after its own
};

// Thrown by a thread of a kernel that has failed, so that what is on its stack is cleared away.
struct Abandoned {};

class Machine {
 public:
  Machine();
  ~Machine();

  bool run_block(const std::function<void()>& kernel, std::size_t shared_bytes);

  int running() const { return running_; }  // the thread in its block, -1 outside of kernels
  unsigned char* shared() { return shared_; }
  std::vector<Copy>& copies() { return threads_[static_cast<std::size_t>(running_)].copies; }

  int barrier(const char* name, int flag, const std::source_location& where);
  Meeting& meet(const char* name, unsigned mask, const void* payload, std::size_t bytes,
                const std::source_location& where);
  void leave(Meeting& meeting);
  [[noreturn]] void fail_on_fiber(const std::string& what);

 private:
  enum class State { unstarted, ready, at_barrier, in_meeting, done };
  struct Thread {
    State state = State::unstarted;
    Fiber* fiber = nullptr;
    const char* waits_in = nullptr;
    std::source_location where;
    std::vector<Copy> copies;
  };

  static void run_fiber(Fiber& fiber);
  void prepare_shared(std::size_t bytes);
  void check_shared();
  void begin_pass();
  int thread_at(int position) const;
  void resume(int thread);
  void set_running(int thread);
  bool take_next(Fiber& fiber);
  void abandon();
  void release_barrier_if_complete();
  void wait(State state);
  void fail(const std::string& what);
  std::string threads_and_places() const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Thread> threads_;
  std::vector<std::vector<std::unique_ptr<Meeting>>> meetings_;  // by warp
  std::vector<int> shuffled_;
  const std::function<void()>* kernel_ = nullptr;
  std::unique_ptr<unsigned char[]> shared_memory_;
  unsigned char* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
  std::uint64_t pass_ = 0;
  int order_ = 0;
  int count_ = 0;
  int done_ = 0;
  int position_ = 0;  // in the running pass
  int running_ = -1;
  int at_barrier_ = 0;
  int barrier_flags_ = 0;
  int barrier_result_ = 0;
  bool failed_ = false;
};

Machine& machine();

}  // namespace zt::emulation
