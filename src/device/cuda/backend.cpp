// The shared object's entries.
#include "device/gpu/backend.h"

#include "device/cuda/cuda_device.h"
#include "device/cuda/errors.h"
#include "device/cuda/nccl_entry.h"
#include "device/cuda/survey.h"

namespace zt::cuda {
namespace {

class CudaBackend final : public GpuBackend {
 public:
  GpuSurvey survey() override {
    GpuSurvey survey = survey_gpus();
    survey.nccl_version = find_nccl(&survey.nccl_problem);
    return survey;
  }
  std::string try_out(int index, GpuInfo* info) override { return try_out_gpu(index, info); }
  std::unique_ptr<Device> open(int index, const GpuOptions& options) override {
    GpuInfo info;
    if (const std::string problem = try_out_gpu(index, &info); !problem.empty()) throw UserError(problem);
    try {
      return std::make_unique<CudaDevice>(index, options);
    } catch (const RunError& error) {
      throw UserError("GPU " + std::to_string(index) + " cannot be used: " + error.what());
    }
  }
  std::unique_ptr<Communicator> nccl(Communicator& host, Device& device, bool fast) override {
    auto* cuda = dynamic_cast<CudaDevice*>(&device);
    if (cuda == nullptr) throw std::logic_error("NCCL needs a device that this backend has opened");
    return make_nccl_communicator(host, *cuda, fast);
  }
};

}  // namespace
}  // namespace zt::cuda

extern "C" {

zt::GpuBackend* zerotrain_gpu_backend() {
  static zt::cuda::CudaBackend backend;
  return &backend;
}

const char* zerotrain_gpu_backend_build() { return zt::gpu_backend_build(); }

}  // extern "C"
