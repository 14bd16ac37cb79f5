// Counts the system calls of the calling thread: a seccomp filter, which needs no privileges, turns each into a signal,
// whose handler notes it and makes it from the one place that the filter lets pass. There is no way back: for a process
// that ends afterwards. x86-64.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
// zt_system_call(number, six arguments), and the address behind its instruction.
asm(R"(
.text
.globl zt_system_call
.type zt_system_call, @function
zt_system_call:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
.globl zt_behind_system_call
zt_behind_system_call:
  ret
.size zt_system_call, . - zt_system_call
)");
extern "C" {
long zt_system_call(long number, long a, long b, long c, long d, long e, long f);
void zt_behind_system_call();
}
#endif

namespace zt::test {

// In memory that survives the process.
struct SystemCallCounts {
  std::atomic<bool> installed, counting;
  std::array<std::atomic<std::int64_t>, 512> by_number;
};

inline SystemCallCounts* system_calls() {
  static auto* const counts = static_cast<SystemCallCounts*>(
      mmap(nullptr, sizeof(SystemCallCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return counts;
}

#if defined(__x86_64__)

inline void on_system_call(int, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto number = static_cast<std::size_t>(info->si_syscall);
  SystemCallCounts& counts = *system_calls();
  if (counts.counting.load(std::memory_order_relaxed) && number < counts.by_number.size()) ++counts.by_number[number];
  registers[REG_RAX] = zt_system_call(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                      registers[REG_R10], registers[REG_R8], registers[REG_R9]);
}

// Returns false where the kernel or a container does not allow it.
inline bool trap_system_calls_of_this_thread() {
  struct sigaction action {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) != 0) return false;
  const auto behind = reinterpret_cast<std::uintptr_t>(&zt_behind_system_call);
  const auto low = static_cast<std::uint32_t>(behind);
  const auto high = static_cast<std::uint32_t>(behind >> 32);
  constexpr auto pointer = static_cast<std::uint32_t>(offsetof(seccomp_data, instruction_pointer));
  std::array<sock_filter, 9> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, low, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#else

inline bool trap_system_calls_of_this_thread() { return false; }

#endif

}  // namespace zt::test
