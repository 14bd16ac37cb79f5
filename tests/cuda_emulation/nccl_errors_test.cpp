// NCCL's slice: mistakes of ranks, ranks that are missing, and calls that are made to fail.
#include <nccl.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch_compat.h"
#include "ranks.h"

using namespace zt::emulation;

TEST_CASE("a mismatched collective is named with rank and call") {
  for (const Streams streams : {Streams::eager, Streams::lazy}) {
    const Configured configured(eight_devices(streams));
    const Findings findings;
    const auto errors = run_threads(3, [](const Rank& self) {
      const Counting memory(30, 0);
      const std::size_t count = self.rank == 2 ? 6 : 5;
      ncclReduceScatter(memory.get(), memory.get(), count, ncclFloat32, ncclSum, self.comm, self.stream);
      cudaStreamSynchronize(self.stream);
      ncclResult_t error = ncclSuccess;
      ncclCommGetAsyncError(self.comm, &error);
      return static_cast<int>(error);
    });
    for (const int error : errors) CHECK((error == ncclInvalidUsage || error == ncclRemoteError));
    REQUIRE(findings.all().size() == 1);
    CHECK(findings.all()[0] ==
          "ranks call different collectives: rank 0 calls ncclReduceScatter(count 5, float32, sum, root 0); rank 2 "
          "calls ncclReduceScatter(count 6, float32, sum, root 0)");
  }
}

TEST_CASE("a letter of another length than expected is named") {
  const Configured configured(eight_devices(Streams::eager));
  const Findings findings;
  run_threads(2, [](const Rank& self) {
    const Counting memory(8, 0);
    if (self.rank == 0) ncclSend(memory.get(), 4, ncclFloat32, 1, self.comm, self.stream);
    if (self.rank == 1) ncclRecv(memory.get(), 3, ncclFloat32, 0, self.comm, self.stream);
    return 0;
  });
  REQUIRE(findings.all().size() == 1);
  CHECK(findings.all()[0].find(
            "rank 0 calls ncclSend(count 4, float32, sum, root 1), but rank 1 calls ncclRecv(count 3") == 0);
}

TEST_CASE("a rank that does not come is named after a while") {
  const Configured configured(eight_devices(Streams::lazy));
  const Findings findings;
  run_threads(3, [](const Rank& self) {
    const Counting memory(3, 0);
    if (self.rank == 1) {
      Settings hasty = settings();
      hasty.patience = 0.2;  // once all ranks are there
      configure(hasty);
      return 0;
    }
    ncclAllReduce(memory.get(), memory.get(), 3, ncclFloat32, ncclSum, self.comm, self.stream);
    const cudaError_t error = cudaStreamSynchronize(self.stream);
    cudaDeviceReset();
    return error == cudaErrorLaunchTimeout ? 0 : 1;
  });
  REQUIRE(findings.all().size() == 2);
  for (const std::string& finding : findings.all()) {
    CHECK(finding.find("waits in ncclAllReduce, its group no. 1, for rank 1") != std::string::npos);
  }
}

TEST_CASE("a stream can be asked while a peer is missing, and an abort lets the others go") {
  const Configured configured(eight_devices(Streams::lazy));
  CHECK(all_zero(run_threads(2, [](Rank& self) {
    const Counting memory(3, 0);
    if (self.rank == 1) return ncclCommAbort(std::exchange(self.comm, nullptr)) == ncclSuccess ? 0 : 1;
    ncclAllReduce(memory.get(), memory.get(), 3, ncclFloat32, ncclSum, self.comm, self.stream);
    ncclResult_t error = ncclSuccess;
    while (error == ncclSuccess) {
      const cudaError_t state = cudaStreamQuery(self.stream);
      if (state != cudaSuccess && state != cudaErrorNotReady) return 1;
      ncclCommGetAsyncError(self.comm, &error);
    }
    return error == ncclRemoteError ? 0 : 1;
  })));
}

TEST_CASE("the n-th collective fails, on the device that is meant") {
  const Configured configured(eight_devices(Streams::eager));
  fail_nth(Call::collective, 2, 1);
  CHECK(all_zero(run_threads(2, [](const Rank& self) {
    const Counting memory(4, 0);
    const auto call = [&] { return ncclAllGather(memory.get(), memory.get(), 1, ncclFloat32, self.comm, self.stream); };
    if (call() != ncclSuccess) return 1;
    if (self.rank == 1 && call() != ncclUnhandledCudaError) return 2;
    return call() == ncclSuccess ? 0 : 3;
  })));
}

TEST_CASE("two ranks on one device are refused, and so is host memory") {
  const Configured configured(eight_devices(Streams::eager));
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::array<ncclResult_t, 2> results = {};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ncclComm_t comm = nullptr;
      results[static_cast<std::size_t>(rank)] = ncclCommInitRank(&comm, 2, id, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK((results[0] == ncclInvalidUsage && results[1] == ncclInvalidUsage));
  const Findings findings;
  CHECK(all_zero(run_threads(1, [](const Rank& self) {
    std::vector<float> host(4);
    const auto result = ncclAllReduce(host.data(), host.data(), 4, ncclFloat32, ncclSum, self.comm, self.stream);
    return result == ncclInvalidArgument ? 0 : 1;
  })));
  CHECK(findings.all().size() == 1);
}
