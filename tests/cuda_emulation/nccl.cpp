// NCCL's functions.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "device_memory.h"
#include "emulation_state.h"
#include "nccl_group.h"

struct ncclComm {
  std::shared_ptr<zt::emulation::Communicator> state;
};

namespace zt::emulation {
namespace {

struct Pending {
  ncclComm_t comm;
  cudaStream_t stream;
  NcclCall call;
};

thread_local int group_depth = 0;
thread_local std::vector<Pending> group;
thread_local ncclResult_t group_error = ncclSuccess;
thread_local std::string last_error;

ncclResult_t refuse(ncclResult_t result, const std::string& text) {
  set_nccl_error(text);
  return result;
}

// The group's calls on one communicator run on its first stream; the other streams wait, as NCCL has it.
ncclResult_t queue_on(ncclComm_t comm, const std::vector<Pending>& calls) {
  std::vector<NcclCall> mine;
  std::set<cudaStream_t> others;
  cudaStream_t stream = nullptr;
  for (const Pending& pending : calls) {
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
  if (queue(stream, group_operation(comm->state, std::move(mine))) != cudaSuccess) return ncclUnhandledCudaError;
  for (cudaStream_t other : others) wait(other, stream);
  return comm->state->error;
}

ncclResult_t end_group() {
  std::vector<Pending> calls;
  calls.swap(group);
  if (const auto error = std::exchange(group_error, ncclSuccess); error != ncclSuccess) return error;
  std::vector<ncclComm_t> comms;
  for (const Pending& pending : calls) {
    if (std::find(comms.begin(), comms.end(), pending.comm) == comms.end()) comms.push_back(pending.comm);
  }
  for (ncclComm_t comm : comms) {
    if (const ncclResult_t result = queue_on(comm, calls); result != ncclSuccess) return result;
  }
  return ncclSuccess;
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

// Waits for all ranks during the initialization.
bool wait_for_all(Communicator& comm) {
  const auto start = std::chrono::steady_clock::now();
  comm.post();
  while (!comm.all_here()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > settings().patience)
      return false;
    sched_yield();
  }
  return true;
}

}  // namespace

void set_nccl_error(const std::string& text) { last_error = text; }

}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return make_region(id) ? ncclSuccess : ncclSystemError; }

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  if (settings().devices == 0) return refuse(ncclUnhandledCudaError, "there is no device");
  if (ranks < 1 || ranks > max_ranks || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, "rank or number of ranks is wrong; 8 ranks at most are emulated");
  }
  auto state = std::make_shared<Communicator>();
  state->region = open_region(id);
  if (state->region == nullptr) return refuse(ncclInvalidArgument, "the unique id is not one of ncclGetUniqueId");
  state->rank = rank;
  state->ranks = ranks;
  state->device = current_device();
  if (state->mine().device_plus_1.exchange(state->device + 1) != 0) {
    return refuse(ncclInvalidUsage, "rank " + std::to_string(rank) + " is there twice, or the id was used before");
  }
  if (!wait_for_all(*state)) return refuse(ncclSystemError, "not there: " + state->missing_ranks());
  close_region_file(id, state->region);
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      if (state->part(a).device_plus_1 != state->part(b).device_plus_1) continue;
      return refuse(ncclInvalidUsage, "Duplicate GPU detected: rank " + std::to_string(a) + " and rank " +
                                          std::to_string(b) + " both use device " +
                                          std::to_string(state->part(a).device_plus_1 - 1));
    }
  }
  *comm = new ncclComm{state};
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  return ncclCommInitRank(comm, ranks, id, rank);
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

// From any thread: those who wait in this communicator's calls, here and on other ranks, are let go.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->stop(ncclInternalError);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  comm->state->stopped();
  *error = comm->state->error;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->state->ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->state->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->state->device;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* memory) {
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(const ncclComm_t, void* memory, std::size_t bytes, void** handle) {
  if (bytes_behind(memory) < bytes) return refuse(ncclInvalidArgument, "what is registered is not device memory");
  *handle = memory;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }

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
