// NCCL's functions as a table, so that the backend needs no NCCL to be loaded: it is opened when several GPUs are to
// work together. Of nccl_functions_dlopen.cpp and the emulation's file of linked functions a build takes one.
#pragma once

#include <nccl.h>

#include <string>

namespace zt::cuda {

// NAME, FUNCTION. Those of the second list need not be there.
#define ZT_NCCL_FUNCTIONS(X)            \
  X(get_version, ncclGetVersion)        \
  X(get_unique_id, ncclGetUniqueId)     \
  X(init, ncclCommInitRankConfig)       \
  X(finalize, ncclCommFinalize)         \
  X(destroy, ncclCommDestroy)           \
  X(abort, ncclCommAbort)               \
  X(async_error, ncclCommGetAsyncError) \
  X(error_string, ncclGetErrorString)   \
  X(last_error, ncclGetLastError)       \
  X(group_start, ncclGroupStart)        \
  X(group_end, ncclGroupEnd)            \
  X(all_gather, ncclAllGather)          \
  X(all_reduce, ncclAllReduce)          \
  X(reduce_scatter, ncclReduceScatter)  \
  X(reduce, ncclReduce)                 \
  X(send, ncclSend)                     \
  X(receive, ncclRecv)
#define ZT_NCCL_OPTIONAL_FUNCTIONS(X) \
  X(allocate, ncclMemAlloc)           \
  X(give_back, ncclMemFree)           \
  X(enroll, ncclCommRegister)         \
  X(strike_off, ncclCommDeregister)

struct NcclFunctions {
#define ZT_NCCL_MEMBER(name, function) decltype(&::function) name = nullptr;
  ZT_NCCL_FUNCTIONS(ZT_NCCL_MEMBER)
  ZT_NCCL_OPTIONAL_FUNCTIONS(ZT_NCCL_MEMBER)
#undef ZT_NCCL_MEMBER

  bool has_memory() const { return allocate && give_back && enroll && strike_off; }
};

// The oldest that can be used: launches of several communicators keep the order of the calls since 2.26
// (NCCL_LAUNCH_ORDER_IMPLICIT).
constexpr int oldest_nccl = 22600;

// "2.28.9" of 22809.
std::string nccl_version_text(int version);

// Opens a library, which stays. UserError: there is none, it is no NCCL, it is too old.
NcclFunctions load_nccl(const std::string& file);

// The functions that this process uses; looked for once. UserError as above, each time.
const NcclFunctions& nccl_functions();

}  // namespace zt::cuda
