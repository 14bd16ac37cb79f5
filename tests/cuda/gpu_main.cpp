// Runs the tests of the backend on a GPU; without one it says why not and ends with 77, which is "skipped" for ctest.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>

#include "device/gpu/backend.h"

extern "C" zt::GpuBackend* zerotrain_gpu_backend();

int main(int argc, char** argv) {
  const zt::GpuSurvey survey = zerotrain_gpu_backend()->survey();
  if (!survey.problem.empty()) {
    std::printf("skipped: %s\n", survey.problem.c_str());
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
