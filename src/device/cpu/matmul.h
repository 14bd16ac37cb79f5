// MatMul of device/operations.h on the CPU.
#pragma once

#include "device/cpu/cpu_context.h"
#include "device/operations.h"

namespace zt::cpu {

// Scratch of an operation with these shapes and dtypes (pointers are ignored). Makes the library's products.
WorkspaceNeed matmul_workspace(const MatMul& operation);
inline void prepare_matmul(const MatMul& operation) { matmul_workspace(operation); }
void run_matmul(const MatMul& operation, Context& context);

// Rows and columns of a tile, the unit of work of one thread: a function of the shape alone.
struct MatMulTiles {
  std::int64_t rows = 0, columns = 0;
};
MatMulTiles matmul_tiles(const MatMul& operation);

}  // namespace zt::cpu
