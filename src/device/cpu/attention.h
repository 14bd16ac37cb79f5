// AttentionForward and AttentionBackward of device/operations.h on the CPU.
#pragma once

#include "device/cpu/cpu_context.h"
#include "device/operations.h"

namespace zt::cpu {

// Scratch of an operation with these shapes and dtypes (pointers are ignored). Makes the library's products.
WorkspaceNeed attention_workspace(const AttentionForward& operation);
WorkspaceNeed attention_workspace(const AttentionBackward& operation);
inline void prepare_attention(const AttentionForward& operation) { attention_workspace(operation); }
inline void prepare_attention(const AttentionBackward& operation) { attention_workspace(operation); }

void run_attention(const AttentionForward& operation, Context& context);
void run_attention(const AttentionBackward& operation, Context& context);

}  // namespace zt::cpu
