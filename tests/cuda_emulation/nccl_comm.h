// What an ncclComm_t points to.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nccl_communicator.h"
#include "stream.h"

namespace zt::emulation {

struct PendingCall {
  ncclComm_t comm;
  cudaStream_t stream;
  NcclCall call;
};

// Puts a group's calls on one communicator on their stream; with `run`, an eager stream runs at once.
ncclResult_t queue_on(ncclComm_t comm, const std::vector<PendingCall>& calls, bool run);

// Notes the text for ncclGetLastError.
ncclResult_t refuse(ncclResult_t result, const std::string& text);

}  // namespace zt::emulation

// A communicator with blocking = 0 says ncclInProgress to every call, and does the work when ncclCommGetAsyncError asks
// for it the second time or later: who does not ask finds nothing on the stream. On eager streams the work is also over
// when it says success.
struct ncclComm {
  enum class Doing { nothing, connecting, launching, running, ending };

  std::shared_ptr<zt::emulation::Communicator> state;
  bool blocking = true;
  Doing doing = Doing::nothing;
  int asked = 0;
  ncclUniqueId id{};
  std::chrono::steady_clock::time_point since{};
  std::vector<zt::emulation::PendingCall> calls;  // of the group that is being launched
  std::shared_ptr<zt::emulation::Stream> stream;  // it runs on
  std::uint64_t position = 0;
  bool finalized = false;
  std::multiset<void*> registered;
};
