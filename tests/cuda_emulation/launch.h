// gpu.h's launch() for the host compiler: the kernel and its arguments become a closure in the stream's queue.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

namespace zt::emulation {

// Checks the sizes as CUDA does, then queues. Errors are returned and kept for cudaGetLastError.
cudaError_t queue_kernel(const void* function, std::function<void()> kernel, dim3 grid, dim3 block,
                         std::size_t shared_bytes, cudaStream_t stream);

}  // namespace zt::emulation

namespace zt::gpu {

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                   const Arguments&... arguments) {
  // The closure holds the parameters; every thread gets its own copies, as on a GPU.
  static_cast<void>(emulation::queue_kernel(
      reinterpret_cast<const void*>(kernel),
      [kernel, ... parameters = static_cast<Parameters>(arguments)] { kernel(parameters...); }, grid, block,
      shared_bytes, stream));
  return cudaGetLastError();  // as under nvcc: also what an earlier call has left
}

}  // namespace zt::gpu
