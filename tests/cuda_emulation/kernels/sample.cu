#include "cuda_emulation/kernels/kernels.h"
#include "device/cuda/gpu.h"

namespace zt::samples {
namespace {

constexpr unsigned all_lanes = 0xffffffffU;

__device__ float warp_sum(float value) {
  for (int bits = 16; bits > 0; bits /= 2) value += __shfl_xor_sync(all_lanes, value, bits);
  return value;
}

__global__ void __launch_bounds__(128) layer_norm_kernel(float* __restrict__ output, const float* __restrict__ input,
                                                         const float* __restrict__ weight, int rows, int width) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  if (row >= rows) return;
  float sum = 0;
  for (int i = lane; i < width; i += warpSize) sum += __ldcs(&input[row * width + i]);
  const float mean = warp_sum(sum) / static_cast<float>(width);
  float squares = 0;
  for (int i = lane; i < width; i += warpSize) {
    const float distance = input[row * width + i] - mean;
    squares += distance * distance;
  }
  const float scale = rsqrtf(warp_sum(squares) / static_cast<float>(width) + 1e-5F);
  for (int i = lane; i < width; i += warpSize) {
    __stcs(&output[row * width + i], (input[row * width + i] - mean) * scale * __ldg(&weight[i]));
  }
}

// The result is in all threads. `shared` has room for one float a warp.
template <typename Combine>
__device__ float block_reduce(float value, float* shared, Combine combine) {
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    value = combine(value, __shfl_down_sync(all_lanes, value, distance));
  }
  const int warps = static_cast<int>(blockDim.x) / warpSize;
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float result = shared[0];
  for (int warp = 1; warp < warps; ++warp) result = combine(result, shared[warp]);
  __syncthreads();
  return result;
}

__global__ void softmax_kernel(float* output, const float* input, int width) {
  __shared__ float shared[4];
  const float* row = input + blockIdx.x * static_cast<unsigned>(width);
  float largest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += 128) largest = fmaxf(largest, row[i]);
  largest = block_reduce(largest, shared, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += 128) sum += __expf(row[i] - largest);
  sum = block_reduce(sum, shared, [](float a, float b) { return a + b; });
  for (int i = static_cast<int>(threadIdx.x); i < width; i += 128) {
    output[blockIdx.x * static_cast<unsigned>(width) + static_cast<unsigned>(i)] = __expf(row[i] - largest) / sum;
  }
}

__global__ void block_sum_kernel(float* total, float* partial, unsigned* finished, const float* input, int count) {
  __shared__ float shared[8];
  __shared__ bool is_last;
  const auto add = [](float a, float b) { return a + b; };
  float sum = 0;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += stride) sum += input[i];
  sum = block_reduce(sum, shared, add);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicAdd(finished, 1U) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  sum = threadIdx.x < gridDim.x ? __ldcg(&partial[threadIdx.x]) : 0.0F;
  sum = block_reduce(sum, shared, add);
  if (threadIdx.x == 0) {
    *total = sum;
    *finished = 0;
  }
}

template <typename T>
__global__ void tensor_matmul_kernel(float* c, const T* a, const T* b, int n, int k, bool b_is_k_by_n) {
  auto* a_tile = reinterpret_cast<T*>(gpu::dynamic_shared());  // [16, 16]
  T* b_tile = a_tile + 256;                                    // [8, 16] or [16, 8], and as much again, unused
  const int lane = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.y) * 16;
  const int column = static_cast<int>(blockIdx.x) * 8;
  float sums[4] = {0, 0, 0, 0};
  for (int start = 0; start < k; start += 16) {
    __syncwarp();
    for (int i = lane; i < 256; i += 32) a_tile[i] = a[(row + i / 16) * k + start + i % 16];
    for (int i = lane; i < 128; i += 32) {
      b_tile[i] = b_is_k_by_n ? b[(start + i / 8) * n + column + i % 8] : b[(column + i / 16) * k + start + i % 16];
      b_tile[128 + i] = T(0.0F);
    }
    __syncwarp();
    const int matrix = lane / 8;
    std::uint32_t a_registers[4];
    gpu::ldmatrix_x4(a_registers, a_tile + (lane % 8 + matrix % 2 * 8) * 16 + matrix / 2 * 8);
    std::uint32_t b_registers[4];
    if (b_is_k_by_n) {
      gpu::ldmatrix_x4_transposed(b_registers, b_tile + lane * 8);
    } else {
      gpu::ldmatrix_x4(b_registers, b_tile + (lane % 8) * 16 + matrix * 8 + (matrix >= 2 ? 112 : 0));
    }
    gpu::mma_m16n8k16<T>(sums, a_registers, {b_registers[0], b_registers[1]});
  }
  float* tile = c + (row + lane / 4) * n + column + lane % 4 * 2;
  tile[0] = sums[0];
  tile[1] = sums[1];
  tile[8 * n] = sums[2];
  tile[8 * n + 1] = sums[3];
}

__global__ void add_one_async_kernel(float* output, const float* input, int count) {
  auto* shared = reinterpret_cast<float*>(gpu::dynamic_shared());
  const int first = static_cast<int>(blockIdx.x * 128);
  const int chunk = static_cast<int>(threadIdx.x) * 4;
  if (threadIdx.x < 32) {
    const int valid = min(max(count - first - chunk, 0), 4);
    gpu::cp_async_16(&shared[chunk], valid > 0 ? &input[first + chunk] : input, valid * 4);
    gpu::cp_async_commit();
    gpu::cp_async_wait<0>();
  }
  __syncthreads();
  const int i = first + static_cast<int>(threadIdx.x);
  if (i < count) output[i] = shared[threadIdx.x] + 1;
}

__global__ void powers_of_two_kernel(float* output, const float* input, int count) {
  const int i = static_cast<int>(blockIdx.x * 128 + threadIdx.x);
  if (i >= count) return;
  output[i] = gpu::exp2_fast(__uint_as_float(gpu::opaque(__float_as_uint(input[i]))));
}

__global__ void warp_exchanges_kernel(int* output) {
  const int lane = static_cast<int>(threadIdx.x);
  int* mine = output + lane * exchanges;
  mine[0] = __shfl_sync(all_lanes, lane * 10, 5);
  mine[1] = __shfl_xor_sync(all_lanes, lane * 10, 3);
  mine[2] = __shfl_down_sync(all_lanes, lane * 10, 4U);
  mine[3] = __shfl_up_sync(all_lanes, lane * 10, 4U);
  mine[4] = __shfl_sync(all_lanes, lane * 10, 2, 8);
  mine[5] = __shfl_down_sync(all_lanes, lane * 10, 3U, 8);
  mine[6] = static_cast<int>(__ballot_sync(all_lanes, lane % 3 == 0));
  mine[7] = __any_sync(all_lanes, lane == 7);
  mine[8] = __all_sync(all_lanes, lane < 31);
  mine[9] = __reduce_add_sync(all_lanes, lane);
  mine[10] = static_cast<int>(__reduce_max_sync(all_lanes, static_cast<unsigned>(lane ^ 5)));
  const unsigned half = lane < 16 ? 0x0000ffffU : 0xffff0000U;  // two meetings of one warp at a time
  mine[11] = static_cast<int>(__reduce_min_sync(half, lane));
  mine[12] = __syncthreads_count(lane % 2);
  mine[13] = __syncthreads_or(lane == 3);
  mine[14] = __syncthreads_and(lane != 3);
  mine[15] = static_cast<int>(__shfl_xor_sync(all_lanes, 0.5 * lane, 16) * 2);
  mine[16] = static_cast<int>(__match_any_sync(half, lane % 3 == 0 ? -1 : lane));
}

__global__ void atomics_kernel(unsigned long long* output) {
  const unsigned t = threadIdx.x;
  atomicAdd(&output[0], 1ULL << 33);
  atomicMax(&output[1], static_cast<unsigned long long>(t * 37 % 64));
  atomicCAS(&output[2], 0ULL, static_cast<unsigned long long>(t) + 1);
  atomicAdd(reinterpret_cast<float*>(&output[3]), 0.25F);
  atomicAdd(reinterpret_cast<int*>(&output[3]) + 1, -1);
}

}  // namespace

cudaError_t layer_norm(float* output, const float* input, const float* weight, int rows, int width,
                       cudaStream_t stream) {
  return gpu::launch(layer_norm_kernel, static_cast<unsigned>((rows + 3) / 4), 128, 0, stream, output, input, weight,
                     rows, width);
}

cudaError_t softmax(float* output, const float* input, int rows, int width, cudaStream_t stream) {
  return gpu::launch(softmax_kernel, static_cast<unsigned>(rows), 128, 0, stream, output, input, width);
}

cudaError_t block_sum(float* total, float* partial, unsigned* finished, const float* input, int count, int blocks,
                      cudaStream_t stream) {
  return gpu::launch(block_sum_kernel, static_cast<unsigned>(blocks), 256, 0, stream, total, partial, finished, input,
                     count);
}

template <typename T>
cudaError_t tensor_matmul(float* c, const T* a, const T* b, int m, int n, int k, bool b_is_k_by_n,
                          cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n / 8), static_cast<unsigned>(m / 16));
  return gpu::launch(tensor_matmul_kernel<T>, grid, 32, 512 * sizeof(T), stream, c, a, b, n, k, b_is_k_by_n);
}
template cudaError_t tensor_matmul(float*, const __half*, const __half*, int, int, int, bool, cudaStream_t);
template cudaError_t tensor_matmul(float*, const __nv_bfloat16*, const __nv_bfloat16*, int, int, int, bool,
                                   cudaStream_t);

cudaError_t add_one_async(float* output, const float* input, int count, int shared_bytes, cudaStream_t stream) {
  return gpu::launch(add_one_async_kernel, static_cast<unsigned>((count + 127) / 128), 128,
                     static_cast<std::size_t>(shared_bytes), stream, output, input, count);
}

cudaError_t powers_of_two(float* output, const float* input, int count, cudaStream_t stream) {
  return gpu::launch(powers_of_two_kernel, static_cast<unsigned>((count + 127) / 128), 128, 0, stream, output, input,
                     count);
}

cudaError_t allow_shared_memory(int bytes) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(add_one_async_kernel),
                              cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

cudaError_t occupancy(int* blocks, int threads, int shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(softmax_kernel), threads,
                                                       static_cast<std::size_t>(shared_bytes));
}

cudaError_t warp_exchanges(int* output, cudaStream_t stream) {
  return gpu::launch(warp_exchanges_kernel, 1, 32, 0, stream, output);
}

cudaError_t atomics(unsigned long long* output, cudaStream_t stream) {
  return gpu::launch(atomics_kernel, 1, 64, 0, stream, output);
}

}  // namespace zt::samples
