// Whether there may be a GPU, found out without starting its driver (which must not happen before a fork).
#pragma once

namespace zt {

// NVIDIA's driver library is installed, or ZEROTRAIN_CUDA_BACKEND names a backend that speaks for itself.
bool gpu_driver_is_installed();

}  // namespace zt
