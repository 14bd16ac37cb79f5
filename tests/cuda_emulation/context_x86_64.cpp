#include <cstdint>

#include "context.h"

// Stores the callee-saved registers on the old stack, its pointer at *rdi, and takes those of the stack rsi.
asm(R"(
  .text
  .p2align 4
  .globl zerotrain_emulation_switch
  .type zerotrain_emulation_switch, @function
zerotrain_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size zerotrain_emulation_switch, . - zerotrain_emulation_switch
)");

extern "C" void zerotrain_emulation_switch(void** save, void* load);

namespace zt::emulation {

void prepare_context(Context& context, char* stack, std::size_t bytes, void (*entry)()) {
  // From the top down: a return address that is never used, the entry, six registers. The ABI wants a stack of
  // 8 modulo 16 at the first instruction of a function.
  auto top = (reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15};
  auto* slots = reinterpret_cast<void**>(top) - 8;
  for (int i = 0; i < 8; ++i) slots[i] = nullptr;
  slots[6] = reinterpret_cast<void*>(entry);
  context.stack_pointer = slots;
}

void switch_context(Context& from, Context& to) { zerotrain_emulation_switch(&from.stack_pointer, to.stack_pointer); }

}  // namespace zt::emulation
