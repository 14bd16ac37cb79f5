#include "device/gpu/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace zt {

bool gpu_driver_is_installed() {
  if (std::getenv("ZEROTRAIN_CUDA_BACKEND") != nullptr) return true;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  dlclose(driver);
  return true;
}

}  // namespace zt
