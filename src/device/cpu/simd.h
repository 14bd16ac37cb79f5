// The operations of device/operations.h on the CPU, all but the products of matrices and attention: vector code
// compiled for several instruction sets, the best one chosen when the program runs (Google Highway).
//
// run() computes one operation at once with the threads of context.pool. The scratch memory that it needs is what
// workspace_of() says: per_worker bytes for every worker of the pool and shared bytes once, contents arbitrary.
// Both depend on shapes and dtypes alone, so they can be asked with null pointers in the views.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/cpu/cpu_context.h"
#include "device/operations.h"

namespace zt::cpu {

// From the plainest to the best. `baseline` is what the compiler may use anyway.
enum class InstructionSet : std::uint8_t { baseline, avx2, avx512 };
std::string_view name_of(InstructionSet set);

// The best that both this program and the processor know.
InstructionSet best_instruction_set();
// What operations use from now on: a set that the processor has, for the whole process. Call it before operations
// run (ranks agree on the lowest set among them, so that all compute the same bits).
void use_instruction_set(InstructionSet set);
// What operations use now.
InstructionSet instruction_set();

#define ZT_SIMD_OPERATION(Operation)               \
  WorkspaceNeed workspace_of(const Operation& op); \
  void run(const Operation& op, Context& context)

ZT_SIMD_OPERATION(Fill);
ZT_SIMD_OPERATION(Cast);
ZT_SIMD_OPERATION(Initialize);
ZT_SIMD_OPERATION(BiasGradient);
ZT_SIMD_OPERATION(EmbeddingForward);
ZT_SIMD_OPERATION(EmbeddingBackward);
ZT_SIMD_OPERATION(LayerNormForward);
ZT_SIMD_OPERATION(LayerNormBackward);
ZT_SIMD_OPERATION(ActivationForward);
ZT_SIMD_OPERATION(ActivationBackward);
ZT_SIMD_OPERATION(DropoutForward);
ZT_SIMD_OPERATION(CachedAttention);
ZT_SIMD_OPERATION(CrossEntropy);
ZT_SIMD_OPERATION(SquaredError);
ZT_SIMD_OPERATION(SumValues);
ZT_SIMD_OPERATION(SumSquares);
ZT_SIMD_OPERATION(ReduceOnto);
ZT_SIMD_OPERATION(DecideUpdate);
ZT_SIMD_OPERATION(AdamUpdate);
ZT_SIMD_OPERATION(SgdUpdate);
ZT_SIMD_OPERATION(AdagradUpdate);
ZT_SIMD_OPERATION(LionUpdate);
ZT_SIMD_OPERATION(LambMoments);
ZT_SIMD_OPERATION(TrustRatios);
ZT_SIMD_OPERATION(LambUpdate);
ZT_SIMD_OPERATION(MuonDirection);
ZT_SIMD_OPERATION(DivideByNorm);
ZT_SIMD_OPERATION(Combine);
ZT_SIMD_OPERATION(MuonUpdate);
ZT_SIMD_OPERATION(Checksum);

#undef ZT_SIMD_OPERATION

}  // namespace zt::cpu
