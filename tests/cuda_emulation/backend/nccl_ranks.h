// Ranks as threads, each with an emulated GPU and NCCL's communicator.
#pragma once

#include <chrono>
#include <functional>

#include "comm/threads.h"
#include "cuda_emulation/emulation.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl_communicator.h"

namespace zt::test {

inline emulation::Settings gpus(int devices) {
  emulation::Settings wanted = emulation::settings();
  wanted.devices = devices;
  wanted.patience = 30;
  return wanted;
}
inline emulation::Settings gpus(int devices, emulation::Streams streams) {
  emulation::Settings wanted = gpus(devices);
  wanted.streams = streams;
  return wanted;
}

inline cuda::NcclOptions hasty() {
  cuda::NcclOptions options;
  options.grace = std::chrono::milliseconds(1000);
  return options;
}

struct NcclRank {
  Communicator& host;
  cuda::CudaDevice& device;
  cuda::NcclCommunicator& nccl;
};

// Rank r has device r.
inline void run_nccl_ranks(int ranks, const cuda::NcclOptions& options, const std::function<void(NcclRank&)>& body) {
  run_ranks_as_threads(ranks, 0, [&](Communicator& host) {
    cuda::CudaDevice device(host.rank(), {});
    cuda::NcclCommunicator nccl(host, device, options);
    NcclRank self{host, device, nccl};
    body(self);
  });
}

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace zt::test
