// The door between the program and its CUDA backend. The backend is a shared object (src/device/cuda/) that is opened
// only when a run wants a GPU, so that the same program runs where there is neither a driver nor CUDA's libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "device/device.h"

namespace zt {

struct GpuInfo {
  std::string name;                   // "NVIDIA H200"
  std::string bus;                    // "0000:3b:00.0": what a card is known by on its machine
  int capability = 0;                 // 10 x major + minor: 90 is sm_90
  std::int64_t memory = 0, free = 0;  // bytes; free: if it was tried out
};

// What this process sees of GPUs.
struct GpuSurvey {
  std::vector<GpuInfo> devices;  // by index, as CUDA_VISIBLE_DEVICES orders them
  std::string problem;           // why none of them can be used, as a sentence; empty if they can
  std::string versions;          // "CUDA 13.0, driver 13.0": for reports
  std::string nccl_version;      // "2.28.9"; empty if there is no NCCL
  std::string nccl_problem;      // why not
};

struct GpuOptions {
  bool tf32 = false;           // fp32 products on tensor cores, operands cut to 10 bits of mantissa
  bool gelu_epilogue = false;  // GELU and its derivative within products
};

class GpuBackend {
 public:
  virtual ~GpuBackend() = default;

  // Starts the driver in this process: not before a fork. Takes no memory of the GPUs, so `free` is 0.
  virtual GpuSurvey survey() = 0;

  // Why this GPU cannot be used, as a sentence; empty if it can, as a tiny kernel has shown, and then *info is about
  // it, with what is free. Takes some hundred MB of it for the rest of the process: each tries the one it will use.
  virtual std::string try_out(int index, GpuInfo* info) = 0;

  // A device for the calling thread, tried out. Errors: UserError.
  virtual std::unique_ptr<Device> open(int index, const GpuOptions& options) = 0;

  // Ranks on GPUs of their own, over NCCL. `host` carries host values, the id and news of failures; it and `device`
  // (from open()) must outlive the communicator. All ranks call it alike. `fast`: gradients are added up by
  // ncclReduceScatter, in an order of its own, instead of in rank order.
  virtual std::unique_ptr<Communicator> nccl(Communicator& host, Device& device, bool fast) = 0;
};

// The backend, opened once a process. Null where there is none, with the reason as a sentence in *problem: the file is
// missing, its libraries are, or it belongs to another build of the program. Searched: ZEROTRAIN_CUDA_BACKEND (a
// file), beside the program, ../lib/zerotrain beside it. Any thread may call it.
GpuBackend* open_gpu_backend(std::string* problem);

// The backend in this file, with the same checks; nothing is searched or remembered.
GpuBackend* open_gpu_backend_file(const std::string& file, std::string* problem);

// What a backend and a program must have in common: version, commit, and a hash of what fixes the layout of the types
// that pass between them.
const char* gpu_backend_build();

// The symbol of the shared object: returns a backend that lives as long as the process.
inline constexpr const char* gpu_backend_symbol = "zerotrain_gpu_backend";
using GpuBackendEntry = GpuBackend* (*)();
inline constexpr const char* gpu_backend_build_symbol = "zerotrain_gpu_backend_build";
using GpuBackendBuildEntry = const char* (*)();

}  // namespace zt
