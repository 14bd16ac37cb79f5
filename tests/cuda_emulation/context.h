// A place in a program at which it can go on: registers and stack. CMake chooses context_x86_64.cpp or, on other
// processors, context_portable.cpp, which is several times slower (it asks the kernel for the signal mask).
#pragma once

#include <ucontext.h>

#include <cstddef>

namespace zt::emulation {

struct Context {
  void* stack_pointer = nullptr;  // context_x86_64.cpp
  ucontext_t saved = {};          // context_portable.cpp
};

// `entry` is called on the stack [stack, stack + bytes) when the context is first switched to; it never returns.
void prepare_context(Context& context, char* stack, std::size_t bytes, void (*entry)());

// Saves where we are in `from` and goes on at `to`.
void switch_context(Context& from, Context& to);

}  // namespace zt::emulation
