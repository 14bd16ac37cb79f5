// The smallest kernel.
#pragma once

#include <cuda_runtime.h>

namespace zt::cuda {

// Runs a kernel that does nothing on the current device and waits for it.
cudaError_t run_probe();

}  // namespace zt::cuda
