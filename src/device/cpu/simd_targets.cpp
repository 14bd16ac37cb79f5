// Choice of the instruction set.
#include "device/cpu/simd_targets.h"

#include <atomic>
#include <string>

#include "core/errors.h"
#include "device/cpu/simd.h"
#include "hwy/highway.h"

namespace zt::cpu {

namespace {

std::int64_t target_of(InstructionSet set) {
#if HWY_ARCH_X86
  if (set == InstructionSet::avx512) return HWY_AVX3;
  if (set == InstructionSet::avx2) return HWY_AVX2;
#endif
  return set == InstructionSet::baseline ? HWY_STATIC_TARGET : 0;
}

// For SetSupportedTargetsForTest, which takes 0 for what the processor has.
std::int64_t mask_of(InstructionSet set) { return set == best_instruction_set() ? 0 : target_of(set); }

std::atomic<InstructionSet>& chosen_set() {
  static std::atomic<InstructionSet> set = best_instruction_set();
  return set;
}

}  // namespace

std::string_view name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline: return "baseline";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx512: return "avx512";
  }
  return "?";
}

InstructionSet best_instruction_set() {
  static const InstructionSet best = [] {
    const std::int64_t known = hwy::SupportedTargets() & HWY_TARGETS;
    for (const InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2}) {
      if ((known & target_of(set)) != 0) return set;
    }
    return InstructionSet::baseline;
  }();
  return best;
}

InstructionSet instruction_set() { return chosen_set(); }

void use_instruction_set(InstructionSet set) {
  if (set > best_instruction_set()) {
    throw RunError("the processor lacks the instruction set " + std::string(name_of(set)));
  }
  chosen_set() = set;
  hwy::SetSupportedTargetsForTest(mask_of(set));
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace zt::cpu
