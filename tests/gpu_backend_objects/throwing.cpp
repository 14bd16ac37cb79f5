// A backend that throws what a backend may throw.
#include <stdexcept>

#include "core/errors.h"
#include "device/gpu/backend.h"

namespace {

class Throwing final : public zt::GpuBackend {
 public:
  zt::GpuSurvey survey() override { return {}; }
  std::string try_out(int, zt::GpuInfo*) override { return {}; }
  std::unique_ptr<zt::Device> open(int index, const zt::GpuOptions&) override {
    switch (index) {
      case 0: throw zt::UserError("a UserError");
      case 1: throw zt::RunError("a RunError");
      case 2: throw zt::PeerFailed(7, "a PeerFailed");
      default: throw std::logic_error("a logic_error");
    }
  }
  std::unique_ptr<zt::Communicator> nccl(zt::Communicator&, zt::Device&, bool) override { return nullptr; }
};

}  // namespace

extern "C" zt::GpuBackend* zerotrain_gpu_backend() {
  static Throwing backend;
  return &backend;
}
