// What the backend knows of NCCL. Needs no header of NCCL's: nccl_absent.cpp takes the place of all other files
// nccl*.cpp where a build has none.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "device/cuda/cuda_device.h"

namespace zt::cuda {

// The version of the NCCL that this process would use ("2.28.9"); empty if there is none, with why not in *problem.
std::string find_nccl(std::string* problem);

// Ranks on GPUs of their own (device/gpu/backend.h, nccl_communicator.h), with the options that rank 0's environment
// asks for (docs/gpu.md), which all ranks take.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, CudaDevice& device, bool fast);

}  // namespace zt::cuda
