// The one header of the GPU's language that kernels include. Under nvcc it is CUDA itself; any other compiler gets the
// emulation of tests/cuda_emulation/, so that the same source is executed in tests without a GPU (docs/gpu.md).
//
// Both sides offer, in namespace zt::gpu:
//
//   launch(kernel, grid, block, shared_bytes, stream, arguments...)   cudaError_t
//       The only way to start a kernel. Arguments are converted to the kernel's parameter types. More than 48 KiB of
//       shared_bytes need cudaFuncSetAttribute(cudaFuncAttributeMaxDynamicSharedMemorySize) before.
//   dynamic_shared()                                                   unsigned char*
//       The block's dynamic shared memory, aligned to 128 bytes.
//   mma_m16n8k16<T>(accumulator, a, b)                                 T: __half or __nv_bfloat16
//       The whole warp: accumulator[4] += A[16, 16] B[16, 8] in fp32. With group = lane / 4 and pair = 2 (lane % 4):
//         a[0] = A[group][pair, pair+1]        a[1] = A[group+8][pair, pair+1]
//         a[2] = A[group][pair+8, pair+9]      a[3] = A[group+8][pair+8, pair+9]
//         b[0] = B[pair, pair+1][group]        b[1] = B[pair+8, pair+9][group]
//         accumulator = C[group][pair], C[group][pair+1], C[group+8][pair], C[group+8][pair+1]
//       The element with the lower index is in the lower half of the register.
//   ldmatrix_x4(registers, row), ldmatrix_x4_transposed(registers, row)
//       The whole warp: four 8x8 matrices of 16-bit elements from shared memory. Lane l gives the address of row l % 8
//       of matrix l / 8 (16 bytes, aligned) and gets, in registers[m], the elements [l / 4][2 (l % 4), +1] of matrix m,
//       or of its transpose.
//   cp_async_16(shared, global, valid_bytes = 16), cp_async_commit(), cp_async_wait<N>()
//       Copies 16 bytes in the background; what lies beyond valid_bytes becomes zero. cp_async_wait<N> waits for all
//       but the calling thread's newest N committed groups; other threads see the bytes after a barrier.
//   opaque(value)                                                      std::uint32_t
//       The value, of which the compiler knows nothing: what is computed from it is not computed before a loop and held
//       in registers meanwhile.
//   exp2_fast(value)                                                   float
//       2^value in one instruction, with a relative error of 2^-22; results below 2^-126 are 0, and 2^0 is 1.
//
// and, everywhere, CUDA's names as far as the emulation has them. Rules that kernels keep so that both sides can run
// them: docs/gpu.md.
#pragma once

#if defined(__CUDACC__)
#include "device/cuda/gpu_nvcc.h"
#else
#include "cuda_emulation/kernel_side.h"
#endif
