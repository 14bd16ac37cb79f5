// Kernels that show what the emulation can run (sample.cu) and what it finds wrong (faulty.cu). Pointers are to device
// memory; each call returns what gpu.h's launch() does.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

namespace zt::samples {

// rows x width, one warp a row.
cudaError_t layer_norm(float* output, const float* input, const float* weight, int rows, int width,
                       cudaStream_t stream);
// rows x width, one block of 128 threads a row.
cudaError_t softmax(float* output, const float* input, int rows, int width, cudaStream_t stream);
// The sum of `count` values, over blocks of 256 threads into partial[blocks], then by the last block to finish into
// *total. *finished is zero before and after.
cudaError_t block_sum(float* total, float* partial, unsigned* finished, const float* input, int count, int blocks,
                      cudaStream_t stream);
// C[m, n] = A[m, k] B, fp32 from 16-bit inputs, on the tensor core, one warp a 16 x 8 tile. B is [n, k] or, if
// `b_is_k_by_n`, [k, n]. m a multiple of 16, n of 8, k of 16.
template <typename T>
cudaError_t tensor_matmul(float* c, const T* a, const T* b, int m, int n, int k, bool b_is_k_by_n, cudaStream_t stream);
// output[i] = input[i] + 1, in blocks of 128, through cp.async and `shared_bytes` of dynamic shared memory.
cudaError_t add_one_async(float* output, const float* input, int count, int shared_bytes, cudaStream_t stream);
// output[i] = exp2_fast(opaque(input[i])).
cudaError_t powers_of_two(float* output, const float* input, int count, cudaStream_t stream);
cudaError_t allow_shared_memory(int bytes);                         // for add_one_async
cudaError_t occupancy(int* blocks, int threads, int shared_bytes);  // of softmax, a multiprocessor
// All that a warp can exchange, as numbers: output[lane][k], k as in sample.cu; 32 x 17 values.
constexpr int exchanges = 17;
cudaError_t warp_exchanges(int* output, cudaStream_t stream);
// output[0..3]: results of atomics of 64 threads; see sample.cu.
cudaError_t atomics(unsigned long long* output, cudaStream_t stream);

enum class Fault {
  none,
  missing_barrier,       // reverses 256 values through shared memory without __syncthreads
  missing_warp_barrier,  // hands a value to the next lane without __syncwarp
  divergent_barrier,     // half of the block waits at another __syncthreads
  lane_outside_mask,     // a lane calls a shuffle with a mask without itself
  different_masks,       // two lanes give different masks
  different_calls,       // half of a warp shuffles, the other half votes
  lane_missing,          // a lane of the mask has ended
  barrier_within_warp,   // some lanes wait at a block barrier, others at a shuffle
  reads_outside_mask,    // a shuffle from a lane that is not in the mask
  missing_copy_wait,     // cp.async without a wait
  beyond_shared_memory,  // writes one element beyond its dynamic shared memory
  misaligned_row,        // ldmatrix from an address that is no multiple of 16
  trap,
};
// One block of 256 threads; output has 256 floats and, without a fault, is 255 - i.
cudaError_t faulty(Fault fault, float* output, cudaStream_t stream);

}  // namespace zt::samples
