// NCCL's communicators from the id to the end, and memory for them.
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <sched.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "device_memory.h"
#include "emulation_state.h"
#include "nccl_comm.h"

namespace zt::emulation {
namespace {

std::mutex registered_mutex;
std::map<void*, int> registered_counts;  // over all communicators

void count_registered(void* memory, int change) {
  const std::lock_guard lock(registered_mutex);
  if ((registered_counts[memory] += change) == 0) registered_counts.erase(memory);
}

bool is_over(const ncclComm& comm) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - comm.since).count() > settings().patience;
}

// One look at a communicator whose ranks gather; ncclInProgress until all are there.
ncclResult_t connect(ncclComm& comm) {
  Communicator& state = *comm.state;
  if (!state.all_here()) {
    if (state.stopped()) return state.error;
    return is_over(comm) ? refuse(ncclSystemError, "not there: " + state.missing_ranks()) : ncclInProgress;
  }
  close_region_file(comm.id, state.region);
  for (int a = 0; a < state.ranks; ++a) {
    for (int b = a + 1; b < state.ranks; ++b) {
      if (state.part(a).device_plus_1 != state.part(b).device_plus_1) continue;
      return refuse(ncclInvalidUsage, "Duplicate GPU detected: rank " + std::to_string(a) + " and rank " +
                                          std::to_string(b) + " both use device " +
                                          std::to_string(state.part(a).device_plus_1 - 1));
    }
  }
  return ncclSuccess;
}

// What a communicator that does not block does when it is asked; ncclInProgress while there is more.
ncclResult_t go_on(ncclComm& comm) {
  using Doing = ncclComm::Doing;
  if (comm.state->error != ncclSuccess || comm.doing == Doing::nothing) return comm.state->error;
  if (++comm.asked < 2) return ncclInProgress;
  ncclResult_t result = ncclSuccess;
  if (comm.doing == Doing::connecting) result = connect(comm);
  if (comm.doing == Doing::ending) comm.finalized = true;
  if (comm.doing == Doing::launching) {
    result = queue_on(&comm, std::exchange(comm.calls, {}), false);
    if (result == ncclSuccess && settings().streams == Streams::eager) comm.doing = Doing::running;
  }
  if (comm.doing == Doing::running) {
    run_a_step(*comm.stream);
    result = comm.state->error;
    if (result == ncclSuccess && comm.stream->done < comm.position) {
      if (!comm.state->stopped()) return ncclInProgress;
      result = comm.state->error;
    }
  }
  if (result == ncclInProgress) return result;
  comm.doing = Doing::nothing;
  if (result != ncclSuccess) comm.state->error = result;
  return result;
}

}  // namespace
}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return make_region(id) ? ncclSuccess : ncclSystemError; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = nullptr;
  if (settings().devices == 0) return refuse(ncclUnhandledCudaError, "there is no device");
  if (ranks < 1 || ranks > max_ranks || rank < 0 || rank >= ranks) {
    return refuse(ncclInvalidArgument, "rank or number of ranks is wrong; 8 ranks at most are emulated");
  }
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  if (config != nullptr && config->magic != fresh.magic)
    return refuse(ncclInvalidArgument, "the config was not made with NCCL_CONFIG_INITIALIZER");
  auto state = std::make_shared<Communicator>();
  state->region = open_region(id);
  if (state->region == nullptr) return refuse(ncclInvalidArgument, "the unique id is not one of ncclGetUniqueId");
  state->rank = rank;
  state->ranks = ranks;
  state->device = current_device();
  if (state->mine().device_plus_1.exchange(state->device + 1) != 0) {
    return refuse(ncclInvalidUsage, "rank " + std::to_string(rank) + " is there twice, or the id was used before");
  }
  auto made = std::make_unique<ncclComm>();
  made->state = std::move(state);
  made->blocking = config == nullptr || config->blocking != 0;
  made->id = id;
  made->since = std::chrono::steady_clock::now();
  made->state->post();
  if (!made->blocking) {
    made->doing = ncclComm::Doing::connecting;
    *comm = made.release();
    return ncclInProgress;
  }
  ncclResult_t result = ncclInProgress;
  while ((result = connect(*made)) == ncclInProgress) sched_yield();
  if (result == ncclSuccess) *comm = made.release();
  return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->doing != ncclComm::Doing::nothing || comm->finalized)
    return refuse(ncclInvalidArgument, "the communicator is still in a call, or was finalized before");
  if (comm->blocking) {
    comm->finalized = true;
    return ncclSuccess;
  }
  comm->doing = ncclComm::Doing::ending;
  comm->asked = 0;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (comm->doing != ncclComm::Doing::nothing) report("ncclCommDestroy of a communicator that is still in a call");
  for (void* memory : comm->registered) count_registered(memory, -1);
  delete comm;
  return ncclSuccess;
}

// From any thread: those who wait in this communicator's calls, here and on other ranks, are let go.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  comm->state->stop(ncclInternalError);
  for (void* memory : comm->registered) count_registered(memory, -1);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  comm->state->stopped();
  *error = comm->blocking ? comm->state->error.load() : go_on(*comm);
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

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* memory) {
  {
    const std::lock_guard lock(registered_mutex);
    if (registered_counts.count(memory) != 0) report("ncclMemFree of memory that is registered with a communicator");
  }
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* memory, std::size_t bytes, void** handle) {
  if (bytes_behind(memory) < bytes) return refuse(ncclInvalidArgument, "what is registered is not device memory");
  comm->registered.insert(memory);
  count_registered(memory, 1);
  *handle = memory;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  const auto found = comm->registered.find(handle);
  if (found == comm->registered.end()) return refuse(ncclInvalidUsage, "the handle is not one of this communicator");
  comm->registered.erase(found);
  count_registered(handle, -1);
  return ncclSuccess;
}

}  // extern "C"
