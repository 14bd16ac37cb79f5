// What is said of GPUs that cannot be used: each reason has a sentence of its own.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <set>
#include <string>

#include "core/errors.h"
#include "cuda/operation_check.h"
#include "cuda_emulation/emulation.h"

namespace zt::test {
namespace {

emulation::Settings changed(const std::function<void(emulation::Settings&)>& change) {
  emulation::Settings settings = emulation::settings();
  change(settings);
  return settings;
}

emulation::Settings with_driver(emulation::Driver driver) {
  return changed([driver](emulation::Settings& settings) { settings.driver = driver; });
}

// CUDA_VISIBLE_DEVICES for the length of a scope.
class Visible {
 public:
  explicit Visible(const char* devices) { setenv("CUDA_VISIBLE_DEVICES", devices, 1); }
  ~Visible() { unsetenv("CUDA_VISIBLE_DEVICES"); }
  Visible(const Visible&) = delete;
  Visible& operator=(const Visible&) = delete;
};

std::string problem() {
  const GpuSurvey survey = zerotrain_gpu_backend()->survey();
  CHECK(cudaPeekAtLastError() == cudaSuccess);  // nothing is left for a later call to find
  return survey.problem;
}

void check_contains(const std::string& text, const std::vector<std::string>& parts) {
  INFO(text);
  for (const std::string& part : parts) {
    INFO("wanted: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a survey tells of every GPU what can be known without using its memory") {
  const emulation::Configured configured(changed([](emulation::Settings& settings) { settings.devices = 3; }));
  const GpuSurvey survey = zerotrain_gpu_backend()->survey();
  CHECK(survey.problem.empty());
  CHECK(survey.versions == "CUDA 13.0, driver 13.0");
  REQUIRE(survey.devices.size() == 3);
  CHECK(survey.devices[2].name == "emulated GPU");
  CHECK(survey.devices[2].bus == "0000:03:00.0");
  CHECK(survey.devices[2].capability == 90);
  CHECK(survey.devices[2].memory == static_cast<std::int64_t>(emulation::settings().device_memory));
  CHECK(survey.devices[2].free == 0);
}

TEST_CASE("a GPU that was tried out tells how much of it is free") {
  GpuInfo info;
  CHECK(zerotrain_gpu_backend()->try_out(0, &info).empty());
  const std::int64_t before = info.free;
  CHECK(before > 0);
  const auto gpu = open_gpu();
  const Buffer buffer = gpu->allocate(std::int64_t{64} << 20, MemoryCategory::data, "test");
  CHECK(zerotrain_gpu_backend()->try_out(0, &info).empty());
  CHECK(info.free <= before - (std::int64_t{64} << 20));
  CHECK(info.name == "emulated GPU");
}

TEST_CASE("every reason why there is no GPU has its own sentence, with codes and versions") {
  std::set<std::string> sentences;
  const auto check = [&](const emulation::Settings& settings, const std::vector<std::string>& parts) {
    const emulation::Configured configured(settings);
    const std::string text = problem();
    check_contains(text, parts);
    CHECK(sentences.insert(text).second);
    CHECK_THROWS_AS(zerotrain_gpu_backend()->open(0, {}), UserError);
    CHECK(zerotrain_gpu_backend()->survey().devices.empty());
  };
  check(with_driver(emulation::Driver::missing),
        {"there is no NVIDIA driver", "cudaErrorInsufficientDriver, CUDA error 35", "--gpus all"});
  check(with_driver(emulation::Driver::too_old),
        {"too old", "CUDA error 35", "it is made for CUDA 12.2", "this backend for CUDA 13.0", "580"});
  check(with_driver(emulation::Driver::for_linking), {"cudaErrorStubLibrary, CUDA error 34", "LD_LIBRARY_PATH"});
  check(with_driver(emulation::Driver::not_ready), {"CUDA error 802", "nvidia-fabricmanager"});
  const emulation::Settings none = changed([](emulation::Settings& settings) { settings.devices = 0; });
  check(none, {"finds no GPU", "cudaErrorNoDevice, CUDA error 100", "CUDA_VISIBLE_DEVICES is not set"});
  const Visible visible("-1");
  check(none, {"finds no GPU", "CUDA_VISIBLE_DEVICES is \"-1\""});
}

TEST_CASE("versions are told without a driver, too") {
  const emulation::Configured configured(with_driver(emulation::Driver::missing));
  CHECK(zerotrain_gpu_backend()->survey().versions == "CUDA 13.0, no driver");
}

TEST_CASE("a GPU below compute capability 8.0 is named with what is needed") {
  const emulation::Configured configured(changed([](emulation::Settings& settings) { settings.capability = 75; }));
  const std::vector<std::string> parts = {"GPU 0 (emulated GPU, 0000:01:00.0) has compute capability 7.5", "8.0",
                                          "CUDA_VISIBLE_DEVICES is not set"};
  check_contains(problem(), parts);
  GpuInfo info;
  check_contains(zerotrain_gpu_backend()->try_out(0, &info), parts);
  CHECK(info.name.empty());
}

TEST_CASE("a GPU for which no kernels were compiled is named with the option that compiles them") {
  const emulation::Configured configured(changed([](emulation::Settings& settings) {
    settings.capability = 120;
    settings.kernels = false;
  }));
  CHECK(problem().empty());  // only a launch shows it
  GpuInfo info;
  check_contains(zerotrain_gpu_backend()->try_out(0, &info),
                 {"no kernels for GPU 0 (emulated GPU, 0000:01:00.0)", "compute capability 12.0",
                  "cudaErrorNoKernelImageForDevice, CUDA error 209", "-DCMAKE_CUDA_ARCHITECTURES=120"});
  CHECK_THROWS_AS(zerotrain_gpu_backend()->open(0, {}), UserError);
}

TEST_CASE("any other error says what CUDA said, where, with versions") {
  emulation::fail_nth(emulation::Call::launch, 1);
  GpuInfo info;
  check_contains(zerotrain_gpu_backend()->try_out(0, &info),
                 {"GPU 0 (emulated GPU, 0000:01:00.0) cannot be used", "CUDA error 701",
                  "cudaErrorLaunchOutOfResources", "the first kernel", "CUDA 13.0, driver 13.0"});
  check_contains(zerotrain_gpu_backend()->try_out(7, &info), {"GPU 7 cannot be used", "CUDA error 101"});
}

}  // namespace zt::test
