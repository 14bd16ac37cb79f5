// Ranks of NCCL as threads, for tests.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>
#include <thread>
#include <vector>

#include "catch_compat.h"
#include "emulation.h"

namespace zt::emulation {

struct Rank {
  int rank = 0;
  int ranks = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Catch's assertions are for one thread: ranks count what is wrong.
using Body = std::function<int(Rank&)>;

inline int run_rank(int rank, int ranks, const ncclUniqueId& id, const Body& body) {
  Rank self = {rank, ranks};
  if (cudaSetDevice(rank) != cudaSuccess) return 1000;
  if (cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking) != cudaSuccess) return 1000;
  if (ncclCommInitRank(&self.comm, ranks, id, rank) != ncclSuccess) return 1000;
  const int wrong = body(self);
  ncclCommDestroy(self.comm);
  cudaStreamDestroy(self.stream);
  return wrong;
}

inline std::vector<int> run_threads(int ranks, const Body& body) {
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

inline Settings eight_devices(Streams streams) {
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

inline bool all_zero(const std::vector<int>& numbers_of_ranks) {
  for (const int number : numbers_of_ranks) {
    if (number != 0) return false;
  }
  return true;
}

}  // namespace zt::emulation
