// NCCL's functions.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <set>
#include <utility>

#include "device_memory.h"
#include "emulation_state.h"
#include "nccl_comm.h"
#include "nccl_group.h"

namespace zt::emulation {
namespace {

thread_local int group_depth = 0;
thread_local std::vector<PendingCall> group;
thread_local ncclResult_t group_error = ncclSuccess;
thread_local std::string last_error;

ncclResult_t end_group() {
  std::vector<PendingCall> calls;
  calls.swap(group);
  if (const auto error = std::exchange(group_error, ncclSuccess); error != ncclSuccess) return error;
  std::vector<ncclComm_t> comms;
  bool in_progress = false;
  for (const PendingCall& pending : calls) {
    if (std::find(comms.begin(), comms.end(), pending.comm) == comms.end()) comms.push_back(pending.comm);
  }
  for (ncclComm_t comm : comms) {
    if (comm->blocking) {
      if (const ncclResult_t result = queue_on(comm, calls, true); result != ncclSuccess) return result;
      continue;
    }
    in_progress = true;
    comm->doing = ncclComm::Doing::launching;
    comm->asked = 0;
    comm->calls.clear();
    std::copy_if(calls.begin(), calls.end(), std::back_inserter(comm->calls),
                 [comm](const PendingCall& call) { return call.comm == comm; });
  }
  return in_progress ? ncclInProgress : ncclSuccess;
}

bool in_device_memory(const char* name, const NcclCall& call, const void* pointer, std::size_t elements) {
  const std::size_t bytes = elements * bytes_of(call.type);
  if (bytes == 0 || bytes_behind(pointer) >= bytes) return true;
  report(text_of(call.kind) + ": its " + name + " buffer has " + std::to_string(bytes) +
         " bytes, but where it points to " + std::to_string(bytes_behind(pointer)) +
         " bytes of device memory are left");
  return false;
}

ncclResult_t check(const Communicator& comm, const NcclCall& call) {
  if (bytes_of(call.type) == 0 || call.op >= ncclNumOps)
    return refuse(ncclInvalidArgument, "type or operation is not emulated");
  if (call.other < 0 || call.other >= comm.ranks) return refuse(ncclInvalidArgument, "root or peer is no rank");
  const auto ranks = static_cast<std::size_t>(comm.ranks);
  const bool reads = call.kind != Kind::receive && (call.kind != Kind::broadcast || call.other == comm.rank);
  const bool writes = call.kind != Kind::send && (call.kind != Kind::reduce || call.other == comm.rank);
  const std::size_t sent = call.kind == Kind::reduce_scatter ? ranks * call.count : call.count;
  const std::size_t received = call.kind == Kind::all_gather ? ranks * call.count : call.count;
  const bool good = (!reads || in_device_memory("send", call, call.send, sent)) &&
                    (!writes || in_device_memory("receive", call, call.receive, received));
  return good ? ncclSuccess : refuse(ncclInvalidArgument, "a buffer is not in device memory, or too small");
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const NcclCall& call) {
  if (comm == nullptr) return refuse(ncclInvalidArgument, "the communicator is null");
  ncclResult_t result = comm->state->error;
  if (comm->finalized) result = refuse(ncclInvalidArgument, "the communicator has been finalized");
  if (comm->doing != ncclComm::Doing::nothing) {
    report("NCCL is called on a communicator before ncclCommGetAsyncError has said that the call before is done");
    result = refuse(ncclInvalidArgument, "the call before is still in progress");
  }
  if (result == ncclSuccess) result = check(*comm->state, call);
  if (result == ncclSuccess && is_to_fail(Call::collective, comm->state->device)) {
    result = refuse(ncclUnhandledCudaError, "made to fail by the test");
  }
  if (result != ncclSuccess) {
    if (group_depth > 0) group_error = result;
    return result;
  }
  group.push_back({comm, stream, call});
  return group_depth > 0 ? ncclSuccess : end_group();
}

}  // namespace

void set_nccl_error(const std::string& text) { last_error = text; }

ncclResult_t refuse(ncclResult_t result, const std::string& text) {
  set_nccl_error(text);
  return result;
}

// The group's calls on one communicator run on its first stream; the other streams wait, as NCCL has it.
ncclResult_t queue_on(ncclComm_t comm, const std::vector<PendingCall>& calls, bool run) {
  const auto state = comm->state;  // an abort takes the communicator away while its calls run
  std::vector<NcclCall> mine;
  std::set<cudaStream_t> others;
  cudaStream_t stream = nullptr;
  for (const PendingCall& pending : calls) {
    if (pending.comm != comm) continue;
    if (mine.empty()) stream = pending.stream;
    if (pending.stream != stream) others.insert(pending.stream);
    mine.push_back(pending.call);
  }
  const auto wait = [](cudaStream_t waiting, cudaStream_t awaited) {
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, awaited);
    cudaStreamWaitEvent(waiting, event, 0);
    cudaEventDestroy(event);
  };
  for (cudaStream_t other : others) wait(stream, other);
  comm->stream = find_stream(stream);
  Operation operation = group_operation(state, std::move(mine));
  const cudaError_t queued = run ? queue(stream, std::move(operation)) : queue_only(stream, std::move(operation));
  if (queued != cudaSuccess) return ncclUnhandledCudaError;
  if (!run) comm->position = comm->stream->queued;
  for (cudaStream_t other : others) wait(other, stream);
  return state->error;
}

}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInProgress: return "in progress";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --group_depth == 0 ? end_group() : ncclSuccess;
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add(comm, stream, {Kind::all_gather, from, to, count, type, ncclSum, 0});
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::all_reduce, from, to, count, type, op, 0});
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::reduce_scatter, from, to, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::broadcast, from, to, count, type, ncclSum, root});
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, {Kind::reduce, from, to, count, type, op, root});
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {Kind::send, from, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {Kind::receive, nullptr, to, count, type, ncclSum, peer});
}

}  // extern "C"
