#include "device/gpu/backend.h"

extern "C" const char* zerotrain_gpu_backend_build() { return zt::gpu_backend_build(); }
