// The product's NCCL: a library of the machine, opened when it is first asked for.
#include <cstdlib>

#include "device/cuda/nccl_functions.h"

namespace zt::cuda {

const NcclFunctions& nccl_functions() {
  static const NcclFunctions functions = [] {
    const char* named = std::getenv("ZEROTRAIN_NCCL");
    return load_nccl(named == nullptr || *named == '\0' ? "libnccl.so.2" : named);
  }();
  return functions;
}

}  // namespace zt::cuda
