// The shared object's entry.
#include "device/gpu/backend.h"

#include <stdexcept>

#include "device/cuda/cuda_device.h"
#include "device/cuda/errors.h"
#include "device/cuda/nccl_entry.h"

namespace zt::cuda {
namespace {

class CudaBackend final : public GpuBackend {
 public:
  GpuSurvey survey() override {
    GpuSurvey survey;
    int devices = 0;
    if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess) {
      survey.problem = describe(status, "cudaGetDeviceCount");
      return survey;
    }
    for (int index = 0; index < devices; ++index) {
      cudaDeviceProp properties{};
      check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
      GpuInfo info;
      info.name = properties.name;
      info.capability = properties.major * 10 + properties.minor;
      survey.devices.push_back(info);
    }
    survey.nccl_version = find_nccl(&survey.nccl_problem);
    return survey;
  }
  std::unique_ptr<Device> open(int index, const GpuOptions& options) override {
    return std::make_unique<CudaDevice>(index, options);
  }
  std::unique_ptr<Communicator> nccl(Communicator& host, Device& device, bool fast) override {
    auto* cuda = dynamic_cast<CudaDevice*>(&device);
    if (cuda == nullptr) throw std::logic_error("NCCL needs a device that this backend has opened");
    return make_nccl_communicator(host, *cuda, fast);
  }
};

}  // namespace
}  // namespace zt::cuda

extern "C" zt::GpuBackend* zerotrain_gpu_backend() {
  static zt::cuda::CudaBackend backend;
  return &backend;
}
