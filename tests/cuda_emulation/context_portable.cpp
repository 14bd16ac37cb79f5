#include "context.h"

namespace zt::emulation {

void prepare_context(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = stack;
  context.saved.uc_stack.ss_size = bytes;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }

}  // namespace zt::emulation
