// NCCL's slice: communicators that do not block, and memory that is registered with them.
#include <nccl.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch_compat.h"
#include "ranks.h"

using namespace zt::emulation;

namespace {

ncclResult_t wait_for(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess) return ncclInternalError;
  }
  return state;
}

// Ranks whose communicators do not block.
std::vector<int> run_nonblocking(int ranks, const Body& body) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<int> wrong(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      wrong[static_cast<std::size_t>(rank)] = [&] {
        Rank self = {rank, ranks};
        if (cudaSetDevice(rank) != cudaSuccess) return 1000;
        if (cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking) != cudaSuccess) return 1000;
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        if (ncclCommInitRankConfig(&self.comm, ranks, id, rank, &config) != ncclInProgress) return 1000;
        if (wait_for(self.comm) != ncclSuccess) return 1000;
        const int result = body(self);
        if (self.comm != nullptr) {
          if (ncclCommFinalize(self.comm) != ncclInProgress || wait_for(self.comm) != ncclSuccess) return 1000;
          if (ncclCommDestroy(self.comm) != ncclSuccess) return 1000;
        }
        cudaStreamDestroy(self.stream);
        return result;
      }();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

}  // namespace

TEST_CASE("calls that do not block are on the stream when they are said to be done") {
  for (const Streams streams : {Streams::eager, Streams::lazy, Streams::lazy_shuffled}) {
    const Configured configured(eight_devices(streams));
    CHECK(all_zero(run_nonblocking(3, [](const Rank& self) {
      const Counting mine(70001, static_cast<float>(self.rank));
      const auto call = [&] {
        return ncclAllReduce(mine.get(), mine.get(), 70001, ncclFloat32, ncclSum, self.comm, self.stream);
      };
      for (int round = 0; round < 2; ++round) {
        if (call() != ncclInProgress || wait_for(self.comm) != ncclSuccess) return 1;
      }
      cudaStreamSynchronize(self.stream);
      return mine.values()[5] == 3.0F * (3.0F + 3.0F * 5.0F) ? 0 : 2;
    })));
  }
}

TEST_CASE("who does not ask for a call's end finds nothing on the stream, and may not call again") {
  const Configured configured(eight_devices(Streams::lazy));
  const Findings findings;
  CHECK(all_zero(run_nonblocking(2, [](const Rank& self) {
    const Counting mine(4, 1.0F);
    const auto call = [&] {
      return ncclAllReduce(mine.get(), mine.get(), 4, ncclFloat32, ncclSum, self.comm, self.stream);
    };
    if (call() != ncclInProgress) return 1;
    cudaStreamSynchronize(self.stream);
    if (mine.values()[0] != 1.0F) return 2;
    if (call() != ncclInvalidArgument) return 3;
    if (wait_for(self.comm) != ncclSuccess) return 4;
    cudaStreamSynchronize(self.stream);
    return mine.values()[0] == 2.0F ? 0 : 5;
  })));
  CHECK(findings.all().size() == 2);
}

TEST_CASE("the connection of ranks can be watched, and a missing rank ends it after the patience") {
  Settings hasty = eight_devices(Streams::eager);
  hasty.patience = 0.1;
  const Configured configured(hasty);
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  REQUIRE(ncclCommInitRankConfig(&comm, 2, id, 1, &config) == ncclInProgress);
  CHECK(wait_for(comm) == ncclSystemError);
  CHECK(std::string(ncclGetLastError(nullptr)) == "not there: rank 0");
  CHECK(ncclCommAbort(comm) == ncclSuccess);
}

TEST_CASE("an abort ends the waiting of a call that does not block, in eager streams, too") {
  const Configured configured(eight_devices(Streams::eager));
  std::atomic<bool> called = false;
  CHECK(all_zero(run_nonblocking(2, [&called](Rank& self) {
    const Counting memory(3, 0);
    while (self.rank == 1 && !called) std::this_thread::yield();
    if (self.rank == 0) {
      called = true;
      ncclAllReduce(memory.get(), memory.get(), 3, ncclFloat32, ncclSum, self.comm, self.stream);
      if (wait_for(self.comm) != ncclRemoteError) return 1;
    }
    return ncclCommAbort(std::exchange(self.comm, nullptr)) == ncclSuccess ? 0 : 2;
  })));
}

TEST_CASE("memory is struck off before it is given back") {
  const Configured configured(eight_devices(Streams::lazy));
  const Findings findings;
  CHECK(all_zero(run_threads(1, [](const Rank& self) {
    void* memory = nullptr;
    void* handle = nullptr;
    if (ncclMemAlloc(&memory, 100) != ncclSuccess) return 1;
    if (ncclCommRegister(self.comm, memory, 1000, &handle) != ncclInvalidArgument) return 2;
    if (ncclCommRegister(self.comm, memory, 100, &handle) != ncclSuccess) return 3;
    if (ncclMemFree(memory) != ncclSuccess) return 4;
    if (ncclCommDeregister(self.comm, handle) != ncclSuccess) return 5;
    return ncclCommDeregister(self.comm, handle) == ncclInvalidUsage ? 0 : 6;
  })));
  REQUIRE(findings.all().size() == 1);
  CHECK(findings.all()[0] == "ncclMemFree of memory that is registered with a communicator");
}
