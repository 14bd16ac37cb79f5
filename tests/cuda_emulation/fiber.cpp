#include "fiber.h"

#include <sys/mman.h>

#include <new>

#include "sanitizer.h"

namespace zt::emulation {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_bytes = std::size_t{256} << 10;  // only the pages that are touched exist

thread_local Fiber* starting = nullptr;

}  // namespace

Fiber::Fiber(void (*entry)(Fiber&), std::size_t index) : entry_(entry), offset_(index % 31 * 64) {
  void* memory =
      mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);  // a kernel that uses up its stack ends here
  stack_ = static_cast<char*>(memory) + page;
  prepare_context(inside_, stack_, stack_bytes - offset_, &Fiber::enter);
}

Fiber::~Fiber() {
  unpoison(stack_, stack_bytes);
  munmap(stack_ - page, page + stack_bytes);
}

void Fiber::enter() {
  Fiber& self = *starting;
  finish_switch(nullptr, &self.outside_stack_, &self.outside_size_);
  self.entry_(self);
}

void Fiber::resume() {
  starting = this;
  start_switch(&fake_stack_outside_, stack_, stack_bytes - offset_);
  switch_context(outside_, inside_);
  finish_switch(fake_stack_outside_, nullptr, nullptr);
}

void Fiber::suspend() {
  start_switch(&fake_stack_inside_, outside_stack_, outside_size_);
  switch_context(inside_, outside_);
  finish_switch(fake_stack_inside_, &outside_stack_, &outside_size_);
}

}  // namespace zt::emulation
