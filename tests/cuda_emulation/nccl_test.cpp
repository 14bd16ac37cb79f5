// NCCL's slice: what collectives give, in eager and lazy streams, with ranks as threads and as processes; and mistakes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include <array>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "death.h"
#include "device_array.h"
#include "emulation.h"

using namespace zt::emulation;

namespace {

struct Rank {
  int rank = 0;
  int ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Catch's assertions are for one thread: ranks count what is wrong.
using Body = std::function<int(Rank&)>;

int run_rank(int rank, int ranks, const ncclUniqueId& id, const Body& body) {
  Rank self = {rank, ranks};
  if (cudaSetDevice(rank) != cudaSuccess) return 1000;
  if (cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking) != cudaSuccess) return 1000;
  if (ncclCommInitRank(&self.comm, ranks, id, rank) != ncclSuccess) return 1000;
  const int wrong = body(self);
  ncclCommDestroy(self.comm);
  cudaStreamDestroy(self.stream);
  return wrong;
}

std::vector<int> run_threads(int ranks, const Body& body) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<int> wrong(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { wrong[static_cast<std::size_t>(rank)] = run_rank(rank, ranks, id, body); });
  }
  for (std::thread& thread : threads) thread.join();
  return wrong;
}

Settings eight_devices(Streams streams) {
  Settings wanted = settings();
  wanted.devices = 8;
  wanted.streams = streams;
  wanted.patience = 20;
  return wanted;
}

// Device memory in which `count` floats are start, start + 1, ...
class Counting {
 public:
  Counting(std::size_t count, float start) : bytes_(count * sizeof(float)) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = start + static_cast<float>(i);
    cudaMalloc(&memory_, bytes_);
    cudaMemcpy(memory_, values.data(), bytes_, cudaMemcpyHostToDevice);
  }
  ~Counting() { cudaFree(memory_); }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  float* get() const { return static_cast<float*>(memory_); }
  std::vector<float> values() const {
    std::vector<float> result(bytes_ / sizeof(float));
    cudaMemcpy(result.data(), memory_, bytes_, cudaMemcpyDeviceToHost);
    return result;
  }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

// All collectives once, on `count` floats a rank; how many values are wrong.
int all_collectives(const Rank& self, std::size_t count) {
  const auto ranks = static_cast<std::size_t>(self.ranks);
  const auto me = static_cast<std::size_t>(self.rank);
  const float start = 1000.0F * static_cast<float>(self.rank);
  const float sum_of_starts = 1000.0F * static_cast<float>(self.ranks * (self.ranks - 1) / 2);
  int wrong = 0;
  const auto expect = [&](const std::vector<float>& values, const std::function<float(std::size_t)>& expected) {
    for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] == expected(i) ? 0 : 1;
  };
  const auto finish = [&](ncclResult_t queued) {
    wrong += queued == ncclSuccess && cudaStreamSynchronize(self.stream) == cudaSuccess ? 0 : 1;
  };
  const auto f = [](std::size_t i) { return static_cast<float>(i); };
  const Counting mine(count, start);
  const Counting whole(ranks * count, start);
  const Counting gathered(ranks * count, -1);
  finish(ncclAllGather(mine.get(), gathered.get(), count, ncclFloat32, self.comm, self.stream));
  expect(gathered.values(), [&](std::size_t i) { return 1000.0F * f(i / count) + f(i % count); });
  const Counting reduced(count, -1);
  finish(ncclReduceScatter(whole.get(), reduced.get(), count, ncclFloat32, ncclSum, self.comm, self.stream));
  expect(reduced.values(), [&](std::size_t i) { return sum_of_starts + f(ranks * (me * count + i)); });
  const Counting all(count, start);  // in place
  finish(ncclAllReduce(all.get(), all.get(), count, ncclFloat32, ncclMax, self.comm, self.stream));
  expect(all.values(), [&](std::size_t i) { return 1000.0F * f(ranks - 1) + f(i); });
  const Counting sent(count, start);
  finish(ncclBroadcast(sent.get(), sent.get(), count, ncclFloat32, self.ranks - 1, self.comm, self.stream));
  expect(sent.values(), [&](std::size_t i) { return 1000.0F * f(ranks - 1) + f(i); });
  // Everybody sends each part of `whole` to its owner.
  const Counting parts(ranks * count, -1);
  ncclGroupStart();
  for (int peer = 0; peer < self.ranks; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * count;
    wrong += ncclSend(whole.get() + at, count, ncclFloat32, peer, self.comm, self.stream) == ncclSuccess ? 0 : 1;
    wrong += ncclRecv(parts.get() + at, count, ncclFloat32, peer, self.comm, self.stream) == ncclSuccess ? 0 : 1;
  }
  finish(ncclGroupEnd());
  expect(parts.values(), [&](std::size_t i) { return 1000.0F * f(i / count) + f(me * count + i % count); });
  return wrong;
}

bool all_zero(const std::vector<int>& numbers_of_ranks) {
  for (const int number : numbers_of_ranks) {
    if (number != 0) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("collectives of ranks as threads, eager and lazy") {
  for (const Streams streams : {Streams::eager, Streams::lazy, Streams::lazy_shuffled}) {
    const Configured configured(eight_devices(streams));
    for (const int ranks : {1, 2, 3, 4}) {
      // More than a chunk and more than a letter, and no multiple of either.
      CHECK(all_zero(run_threads(ranks, [](const Rank& self) { return all_collectives(self, 70001); })));
      CHECK(all_zero(run_threads(ranks, [](const Rank& self) { return all_collectives(self, 5); })));
    }
  }
}

TEST_CASE("collectives of ranks as processes") {
  const Configured configured(eight_devices(Streams::lazy));
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  constexpr int ranks = 3;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const int wrong = run_rank(rank, ranks, id, [](const Rank& self) { return all_collectives(self, 70001); });
      _exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}

TEST_CASE("sums are added around the ring, rounded at every step") {
  const Configured configured(eight_devices(Streams::eager));
  // 1e8 + 1 - 1e8 in fp32: 0 or 1 as the order is. Slice 0 begins with rank 1, slice 1 with rank 2, slice 2 with rank
  // 0.
  const std::array<float, 3> values = {1e8F, 1.0F, -1e8F};
  const std::array<float, 3> expected = {(1.0F + -1e8F) + 1e8F, (-1e8F + 1e8F) + 1.0F, (1e8F + 1.0F) + -1e8F};
  CHECK(all_zero(run_threads(3, [&](const Rank& self) {
    const auto me = static_cast<std::size_t>(self.rank);
    const std::vector<float> all(3, values[me]);
    const Counting memory(3, 0);
    const Counting result(1, 0);
    cudaMemcpy(memory.get(), all.data(), 3 * sizeof(float), cudaMemcpyHostToDevice);
    ncclReduceScatter(memory.get(), result.get(), 1, ncclFloat32, ncclSum, self.comm, self.stream);
    cudaStreamSynchronize(self.stream);
    return result.values()[0] == expected[me] ? 0 : 1;
  })));
}

TEST_CASE("averages multiply before they add, and 16-bit sums round at every step") {
  const Configured configured(eight_devices(Streams::lazy));
  CHECK(all_zero(run_threads(3, [](const Rank& self) {
    // In fp16, 60000 / 3 three times is 60000; a sum of 60000 three times would be infinite.
    // In bf16, 256 + 1 stays 256, whichever comes first; 1 + 1 + 256 around the ring is 258.
    void* memory = nullptr;
    if (ncclMemAlloc(&memory, 8) != ncclSuccess) return 100;
    const __half big = __float2half(60000.0F);
    const __nv_bfloat16 mine = __float2bfloat16(self.rank == 0 ? 256.0F : 1.0F);
    auto* bf16 = static_cast<__nv_bfloat16*>(memory);
    auto* fp16 = static_cast<__half*>(memory) + 3;
    for (int i = 0; i < 3; ++i) cudaMemcpy(bf16 + i, &mine, sizeof mine, cudaMemcpyHostToDevice);
    cudaMemcpy(fp16, &big, sizeof big, cudaMemcpyHostToDevice);
    ncclAllReduce(bf16, bf16, 3, ncclBfloat16, ncclSum, self.comm, self.stream);
    ncclAllReduce(fp16, fp16, 1, ncclFloat16, ncclAvg, self.comm, self.stream);
    cudaStreamSynchronize(self.stream);
    std::array<__nv_bfloat16, 3> sums;
    __half average;
    cudaMemcpy(sums.data(), bf16, sizeof sums, cudaMemcpyDeviceToHost);
    cudaMemcpy(&average, fp16, sizeof average, cudaMemcpyDeviceToHost);
    int wrong = ncclMemFree(memory) == ncclSuccess ? 0 : 1;
    const std::array<float, 3> expected = {258.0F, 256.0F, 256.0F};  // begun by ranks 1, 2 and 0
    for (std::size_t i = 0; i < 3; ++i) wrong += __bfloat162float(sums[i]) == expected[i] ? 0 : 1;
    return wrong + (__half2float(average) == 60000.0F ? 0 : 1);
  })));
}

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
  Settings wanted = eight_devices(Streams::lazy);
  wanted.patience = 0.2;
  const Configured configured(wanted);
  const Findings findings;
  run_threads(3, [](const Rank& self) {
    const Counting memory(3, 0);
    if (self.rank == 1) return 0;
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
