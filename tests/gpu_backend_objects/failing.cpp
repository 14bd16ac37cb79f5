// A backend that cannot start.
#include "core/errors.h"
#include "device/gpu/backend.h"

extern "C" zt::GpuBackend* zerotrain_gpu_backend() { throw zt::UserError("this one never starts"); }
