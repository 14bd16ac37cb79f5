// Matrix products with a dimension of a few: the linear layers of a small batch, or of one position of a sequence. They
// are bound by reading the weights once or writing their gradients once, which the tiles of matmul.cpp, made for
// products that are bound by arithmetic, do not do. Vector code for the three forms of a linear layer:
//
//   y = x Wt     m <= thin_extent   dot products of rows
//   dx = dy W    m <= thin_extent   sums of rows
//   dW = dyt x   k <= thin_extent   outer products
//
// In fp32 with fused multiplication and addition whatever the operands' dtype; each element in an order of its own,
// fixed by the shape and the number of lanes.
#pragma once

#include "device/cpu/cpu_context.h"
#include "device/operations.h"

namespace zt::cpu {

constexpr std::int64_t thin_extent = 8;

// Whether the product has one of the forms above; m, n, k > 0.
bool is_thin(const MatMul& operation);
// Of thin products; without the activation that may follow.
WorkspaceNeed thin_workspace(const MatMul& operation);
void run_thin(const MatMul& operation, Context& context);

}  // namespace zt::cpu
