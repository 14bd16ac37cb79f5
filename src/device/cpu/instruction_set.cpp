#include "device/cpu/instruction_set.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>

#include "device/cpu/simd.h"

namespace zt::cpu {
namespace {

constexpr std::array<std::string_view, 4> names = {"baseline", "avx2", "avx512", "avx512_bf16"};

std::atomic<int> limit{-1};  // -1: none

InstructionLevel detect() {
#if defined(__x86_64__)
  // These ask the operating system too whether it saves the registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && __builtin_cpu_supports("avx512bf16")) return InstructionLevel::avx512_bf16;
  if (avx512) return InstructionLevel::avx512;
  if (avx2) return InstructionLevel::avx2;
#endif
  return InstructionLevel::baseline;
}

void limit_product_library(InstructionLevel level) {
#if defined(__x86_64__)
  const dnnl::cpu_isa cap = level == InstructionLevel::avx512 ? dnnl::cpu_isa::avx512_core
                            : level == InstructionLevel::avx2 ? dnnl::cpu_isa::avx2
                                                              : dnnl::cpu_isa::sse41;
  if (dnnl::set_max_cpu_isa(cap) != dnnl::status::success) {
    throw std::logic_error("the instruction set must be limited before the first matrix product");
  }
#else
  (void)level;
#endif
}

void limit_vector_kernels(InstructionLevel level) {
  const InstructionSet asked = level >= InstructionLevel::avx512 ? InstructionSet::avx512
                               : level == InstructionLevel::avx2 ? InstructionSet::avx2
                                                                 : InstructionSet::baseline;
  use_instruction_set(std::min(asked, best_instruction_set()));
}

}  // namespace

std::string_view name_of(InstructionLevel level) { return names.at(static_cast<std::size_t>(level)); }

std::optional<InstructionLevel> instruction_level_from(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names.at(i) == name) return static_cast<InstructionLevel>(i);
  }
  return std::nullopt;
}

InstructionLevel detected_instruction_level() {
  static const InstructionLevel detected = detect();
  return detected;
}

InstructionLevel instruction_level() {
  const int cap = limit.load(std::memory_order_relaxed);
  const InstructionLevel best = detected_instruction_level();
  return cap < 0 ? best : static_cast<InstructionLevel>(std::min(cap, static_cast<int>(best)));
}

void limit_instruction_set(InstructionLevel level) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (level >= detected_instruction_level() && limit.load() < 0) {
    // Processors that also have AMX would add in yet another order: the name of the level must say it all. Too late
    // (after a first product) it stays as it is, for this process alone.
    if (detected_instruction_level() == InstructionLevel::avx512_bf16) {
      dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
    }
    return;
  }
  if (limit.load() == static_cast<int>(level)) return;
  if (limit.load() >= 0) throw std::logic_error("the instruction set was already limited");
  limit_product_library(level);
  limit_vector_kernels(level);
  limit.store(static_cast<int>(level));
}

}  // namespace zt::cpu
