// A fiber: a call that can be left in the middle and entered again. One OS thread resumes it, always the same.
#pragma once

#include <cstddef>

#include "context.h"

namespace zt::emulation {

class Fiber {
 public:
  // `entry` gets the fiber, runs on the fiber's own stack and never returns. `index` spreads the tops of the stacks
  // over the sets of the cache.
  Fiber(void (*entry)(Fiber&), std::size_t index);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();   // into the fiber, until it suspends itself
  void suspend();  // called on the fiber: back to who resumed it

  int thread = -1;  // the thread of the block that it runs

 private:
  static void enter();

  void (*entry_)(Fiber&);
  char* stack_;
  std::size_t offset_;
  Context inside_;
  Context outside_;
  void* fake_stack_inside_ = nullptr;  // the address sanitizer's
  void* fake_stack_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_size_ = 0;
};

}  // namespace zt::emulation
