// Each fault is a real mistake of kernels. Lines that findings name end with a comment that the tests look for.
#include "cuda_emulation/kernels/kernels.h"
#include "device/cuda/gpu.h"

namespace zt::samples {
namespace {

constexpr unsigned all_lanes = 0xffffffffU;

__global__ void faulty_kernel(Fault fault, float* output) {
  auto* shared = reinterpret_cast<float*>(gpu::dynamic_shared());  // 256 floats
  const int t = static_cast<int>(threadIdx.x);
  const int lane = t % 32;
  float value = static_cast<float>(t);
  switch (fault) {
    case Fault::none: break;
    case Fault::missing_barrier:
      shared[t] = value;
      output[t] = shared[255 - t];
      return;
    case Fault::missing_warp_barrier:
      shared[t] = static_cast<float>(255 - t + 1);
      output[t] = lane == 31 ? static_cast<float>(255 - t) : shared[t + 1];
      return;
    case Fault::divergent_barrier:
      if (t < 128) {
        __syncthreads();  // first barrier
      } else {
        __syncthreads();  // second barrier
      }
      break;
    case Fault::lane_outside_mask: value = __shfl_xor_sync(lane == 5 ? 0xffffffdfU : all_lanes, value, 1); break;
    case Fault::different_masks: value = __shfl_xor_sync(lane < 16 ? all_lanes : 0xffff0001U, value, 1); break;
    case Fault::different_calls:
      if (lane < 16) {
        value = __shfl_xor_sync(all_lanes, value, 1);  // shuffle
      } else {
        value += static_cast<float>(__any_sync(all_lanes, 0));  // vote
      }
      break;
    case Fault::lane_missing:
      if (t == 40) return;
      value = __shfl_xor_sync(all_lanes, value, 1);  // incomplete shuffle
      break;
    case Fault::barrier_within_warp:
      if (lane < 4) __syncthreads();  // barrier of four lanes
      value = __shfl_xor_sync(all_lanes, value, 1);
      break;
    case Fault::reads_outside_mask:
      if (lane < 16) value = __shfl_sync(0x0000ffffU, value, 20);  // outside read
      break;
    case Fault::missing_copy_wait:
      if (t < 64) gpu::cp_async_16(&shared[t * 4], &output[t * 4]);
      gpu::cp_async_commit();
      __syncthreads();
      value = shared[t];
      break;
    case Fault::beyond_shared_memory:
      shared[t + 1] = value;  // beyond the end
      break;
    case Fault::misaligned_row: {
      std::uint32_t registers[4];
      gpu::ldmatrix_x4(registers, &shared[lane * 4 + 1]);  // misaligned row
      value = static_cast<float>(registers[0]);
      break;
    }
    case Fault::trap:
      if (t == 3) __trap();  // trap
      break;
  }
  __syncthreads();
  shared[t] = value;
  __syncthreads();
  output[t] = shared[255 - t];
}

}  // namespace

cudaError_t faulty(Fault fault, float* output, cudaStream_t stream) {
  return gpu::launch(faulty_kernel, 1, 256, 256 * sizeof(float), stream, fault, output);
}

}  // namespace zt::samples
