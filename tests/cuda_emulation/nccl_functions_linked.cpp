// What src/device/cuda/nccl_functions_dlopen.cpp is to the product: the emulation's functions, linked.
#include "device/cuda/nccl_functions.h"

namespace zt::cuda {

const NcclFunctions& nccl_functions() {
#define ZT_NCCL_LINKED(name, function) .name = ::function,
  static constexpr NcclFunctions functions = {ZT_NCCL_FUNCTIONS(ZT_NCCL_LINKED)
                                                  ZT_NCCL_OPTIONAL_FUNCTIONS(ZT_NCCL_LINKED)};
#undef ZT_NCCL_LINKED
  return functions;
}

}  // namespace zt::cuda
