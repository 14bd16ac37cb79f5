// NCCL's slice: what collectives give, in eager and lazy streams, with ranks as threads and as processes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <vector>

#include "catch_compat.h"
#include "ranks.h"

using namespace zt::emulation;

namespace {

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
