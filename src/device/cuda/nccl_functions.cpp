#include "device/cuda/nccl_functions.h"

#include <dlfcn.h>

#include "core/errors.h"
#include "device/cuda/nccl_entry.h"

namespace zt::cuda {
namespace {

constexpr const char* advice =
    " Install NCCL for CUDA 13 (Debian and Ubuntu: libnccl2; Python: nvidia-nccl-cu13), say in ZEROTRAIN_NCCL where "
    "its "
    "libnccl.so.2 is, or set device.communicator to \"staged\"";

}  // namespace

std::string nccl_version_text(int version) {
  // Since 2.9 the code is 10000 major + 100 minor + patch; before it was 1000 major.
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

NcclFunctions load_nccl(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw UserError("NCCL, over which GPUs talk to each other, could not be opened: " +
                    std::string(reason == nullptr ? file : reason) + "." + advice);
  }
  NcclFunctions functions;
  functions.get_version = reinterpret_cast<decltype(functions.get_version)>(dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (functions.get_version == nullptr || functions.get_version(&version) != ncclSuccess) {
    throw UserError(file + " is not NCCL: it has no ncclGetVersion." + advice);
  }
  if (version < oldest_nccl) {
    throw UserError("NCCL " + nccl_version_text(version) + " (" + file + ") is too old: " +
                    nccl_version_text(oldest_nccl) + " or a later one is needed, which starts the transfers of " +
                    "several communicators in one order on all ranks." + advice);
  }
#define ZT_NCCL_FIND(name, function) \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #function));
#define ZT_NCCL_REQUIRE(name, function)                                                                      \
  ZT_NCCL_FIND(name, function)                                                                               \
  if (functions.name == nullptr) {                                                                           \
    throw UserError("NCCL " + nccl_version_text(version) + " (" + file + ") lacks " #function "." + advice); \
  }
  ZT_NCCL_FUNCTIONS(ZT_NCCL_REQUIRE)
  ZT_NCCL_OPTIONAL_FUNCTIONS(ZT_NCCL_FIND)
#undef ZT_NCCL_REQUIRE
#undef ZT_NCCL_FIND
  return functions;
}

std::string find_nccl(std::string* problem) {
  try {
    int version = 0;
    static_cast<void>(nccl_functions().get_version(&version));
    return nccl_version_text(version);
  } catch (const UserError& error) {
    *problem = error.what();
    return {};
  }
}

}  // namespace zt::cuda
