#include <dlfcn.h>

#include <cstdlib>

#include "device/gpu/backend.h"

namespace zt {

GpuBackend* open_gpu_backend(std::string* problem) {
  const char* const file = std::getenv("ZEROTRAIN_CUDA_BACKEND");
  void* const object = dlopen(file != nullptr ? file : "libzerotrain_cuda.so", RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    *problem = dlerror();
    return nullptr;
  }
  return reinterpret_cast<GpuBackendEntry>(dlsym(object, gpu_backend_symbol))();
}

}  // namespace zt
