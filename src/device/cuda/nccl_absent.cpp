// A backend that was built where NCCL's header was not to be found.
#include "core/errors.h"
#include "device/cuda/nccl_entry.h"

namespace zt::cuda {
namespace {

constexpr const char* reason =
    "this build of zerotrain has no NCCL, over which GPUs talk to each other: nccl.h was not found when it was built "
    "(NCCL_ROOT says to CMake where it is)";

}  // namespace

std::string find_nccl(std::string* problem) {
  *problem = reason;
  return {};
}

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, CudaDevice&, bool) {
  throw UserError(std::string(reason) + ". device.communicator \"staged\" does without");
}

}  // namespace zt::cuda
