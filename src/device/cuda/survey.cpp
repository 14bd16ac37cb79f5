#include "device/cuda/survey.h"

#include <cuda_runtime.h>

#include <cstdlib>

#include "device/cuda/errors.h"
#include "device/cuda/probe.h"

namespace zt::cuda {
namespace {

constexpr int lowest_capability = 80;  // bf16 products and copies in the background

// "13.0" of 13000.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string capability_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// What limits the GPUs that this process sees, for every sentence about them.
std::string visible_text() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "CUDA_VISIBLE_DEVICES is not set";
  return std::string("CUDA_VISIBLE_DEVICES is \"") + visible + "\"";
}

// "(cudaErrorNoDevice, CUDA error 100)".
std::string code_text(cudaError_t status) {
  return std::string("(") + cudaGetErrorName(status) + ", CUDA error " + std::to_string(static_cast<int>(status)) + ")";
}

struct Versions {
  int runtime = 0, driver = 0;

  std::string text() const {
    return "CUDA " + version_text(runtime) + ", " + (driver == 0 ? "no driver" : "driver " + version_text(driver));
  }
};

Versions versions() {
  Versions result;
  // Both succeed without a driver, too, whose version is 0 then.
  static_cast<void>(cudaRuntimeGetVersion(&result.runtime));
  static_cast<void>(cudaDriverGetVersion(&result.driver));
  return result;
}

std::string sentence_of(cudaError_t status, const Versions& versions) {
  const std::string code = code_text(status);
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (versions.driver == 0) {
        return "there is no NVIDIA driver on this machine " + code +
               ": install NVIDIA's driver; a container sees it if it is started with its GPUs (docker run --gpus all)";
      }
      return "the NVIDIA driver is too old " + code + ": it is made for CUDA " + version_text(versions.driver) +
             ", this backend for CUDA " + version_text(versions.runtime) +
             ". Update the driver (CUDA 13 needs version 580 or later)";
    case cudaErrorStubLibrary:
      return "what is found as NVIDIA's driver is the toolkit's stand-in for linking " + code +
             ": take its folder (.../stubs) out of LD_LIBRARY_PATH, and install NVIDIA's driver if there is none";
    case cudaErrorNoDevice:
      return "the driver (" + version_text(versions.driver) + ") finds no GPU " + code + "; " + visible_text() +
             ". nvidia-smi -L lists what the machine has";
    case cudaErrorSystemNotReady:
      return "the driver is not ready " + code +
             ": on machines with NVSwitch the service nvidia-fabricmanager must run, in the driver's version";
    default:
      return "the GPUs cannot be used: " + describe(status, "cudaGetDeviceCount") + "; " + versions.text() + "; " +
             visible_text();
  }
}

// "GPU 0 (NVIDIA H200, 0000:3b:00.0)".
std::string name_text(int index, const GpuInfo& info) {
  return "GPU " + std::to_string(index) + " (" + info.name + ", " + info.bus + ")";
}

std::string too_low(int index, const GpuInfo& info) {
  return name_text(index, info) + " has compute capability " + capability_text(info.capability) + ", and " +
         capability_text(lowest_capability) + " (A100) or later is needed; " + visible_text() +
         ", which can choose another GPU";
}

// What can be known of a GPU without using its memory.
cudaError_t read_info(int index, GpuInfo* info) {
  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDeviceProperties(&properties, index);
  if (status != cudaSuccess) return status;
  char bus[32] = {};
  status = cudaDeviceGetPCIBusId(bus, sizeof bus, index);
  if (status != cudaSuccess) return status;
  info->name = properties.name;
  info->bus = bus;
  info->capability = properties.major * 10 + properties.minor;
  info->memory = static_cast<std::int64_t>(properties.totalGlobalMem);
  info->free = 0;
  return cudaSuccess;
}

std::string failed(const std::string& name, cudaError_t status, const char* call) {
  static_cast<void>(cudaGetLastError());
  return name + " cannot be used: " + describe(status, call) + "; " + versions().text() + "; " + visible_text();
}

}  // namespace

GpuSurvey survey_gpus() {
  GpuSurvey survey;
  const Versions known = versions();
  survey.versions = known.text();
  int count = 0;  // left as it is when there is none
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    survey.problem = sentence_of(status, known);
    return survey;
  }
  bool usable = false;
  for (int index = 0; index < count; ++index) {
    GpuInfo info;
    status = read_info(index, &info);
    if (status != cudaSuccess) {
      survey.devices.clear();
      survey.problem = failed("GPU " + std::to_string(index), status, "cudaGetDeviceProperties");
      return survey;
    }
    usable = usable || info.capability >= lowest_capability;
    survey.devices.push_back(info);
  }
  if (!usable) survey.problem = too_low(0, survey.devices.front());
  return survey;
}

std::string try_out_gpu(int index, GpuInfo* info) {
  GpuInfo found;
  cudaError_t status = read_info(index, &found);
  if (status != cudaSuccess) return failed("GPU " + std::to_string(index), status, "cudaGetDeviceProperties");
  if (found.capability < lowest_capability) return too_low(index, found);
  const std::string name = name_text(index, found);
  status = cudaSetDevice(index);
  if (status != cudaSuccess) return failed(name, status, "cudaSetDevice");
  status = run_probe();
  if (status == cudaErrorNoKernelImageForDevice) {
    static_cast<void>(cudaGetLastError());
    return "this backend has no kernels for " + name + ", of compute capability " + capability_text(found.capability) +
           " " + code_text(status) + ": build it with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(found.capability);
  }
  if (status != cudaSuccess) return failed(name, status, "the first kernel");
  std::size_t free = 0;
  std::size_t total = 0;
  status = cudaMemGetInfo(&free, &total);
  if (status != cudaSuccess) return failed(name, status, "cudaMemGetInfo");
  found.free = static_cast<std::int64_t>(free);
  *info = found;
  return "";
}

}  // namespace zt::cuda
