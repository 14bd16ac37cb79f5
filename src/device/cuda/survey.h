// Which GPUs there are, and why one cannot be used: the answers of GpuBackend::survey and GpuBackend::try_out.
#pragma once

#include <string>

#include "device/gpu/backend.h"

namespace zt::cuda {

GpuSurvey survey_gpus();

std::string try_out_gpu(int index, GpuInfo* info);

}  // namespace zt::cuda
