// What the processor can do, and a cap on what of it is used: results depend on the instruction set, so the ranks
// of a run agree on the lowest of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zt::cpu {

// In ascending order: each contains those before it.
enum class InstructionLevel : std::uint8_t {
  baseline,     // SSE4.1
  avx2,         // with FMA and F16C
  avx512,       // F, BW, CD, DQ, VL
  avx512_bf16,  // multiplies bf16
};

std::string_view name_of(InstructionLevel level);
std::optional<InstructionLevel> instruction_level_from(std::string_view name);

// The best that this processor, operating system and the libraries offer.
InstructionLevel detected_instruction_level();

// What is used: the detected one unless limited.
InstructionLevel instruction_level();

// Caps the whole process (our kernels and the library of products) at `level`; a level above the detected one means
// no cap. To be called before the first product is prepared, and not more than once with different levels: a
// std::logic_error says so otherwise.
void limit_instruction_set(InstructionLevel level);

}  // namespace zt::cpu
