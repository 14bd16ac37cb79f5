// The backend as the program has it: a shared object, opened at run time; here the one for emulated GPUs.
#include <cstdlib>
#include <vector>

#include "catch_compat.h"
#include "core/errors.h"
#include "device/gpu/backend.h"

namespace zt {
namespace {

GpuBackend& backend() {
  setenv("ZEROTRAIN_EMULATION_DEVICES", "2", 1);
  setenv("ZEROTRAIN_CUDA_BACKEND", ZEROTRAIN_EMULATED_BACKEND, 1);
  std::string problem;
  GpuBackend* const opened = open_gpu_backend(&problem);
  INFO(problem);
  REQUIRE(opened != nullptr);
  return *opened;
}

TEST_CASE("the backend opens, finds its GPUs and computes with them") {
  CHECK(backend().survey().problem.empty());
  REQUIRE(backend().survey().devices.size() == 2);
  const auto device = backend().open(0, {});
  const std::vector<float> values = {1.0F, 2.0F, 3.0F};
  std::vector<float> back(values.size());
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  const Buffer buffer = device->allocate(bytes, MemoryCategory::data, "values");
  device->copy(Stream::compute, buffer.data(), values.data(), bytes);
  device->copy(Stream::compute, back.data(), buffer.data(), bytes);
  device->synchronize(Stream::compute);
  CHECK(back == values);
}

TEST_CASE("errors of the backend are the program's errors") {
  CHECK_THROWS_AS(backend().open(5, {}), UserError);
  const auto device = backend().open(0, {});
  CHECK_THROWS_AS(device->allocate(std::int64_t{1} << 50, MemoryCategory::data, "all memory"), UserError);
  // The emulated GPUs do not read each other's memory.
  const auto other = backend().open(1, {});
  const Buffer here = device->allocate(64, MemoryCategory::data, "here");
  const Buffer there = other->allocate(64, MemoryCategory::data, "there");
  CHECK_THROWS_AS(device->copy(Stream::compute, here.data(), there.data(), 64), RunError);
}

TEST_CASE("memory may be given back after its device") {
  auto device = backend().open(0, {});
  Buffer buffer = device->allocate(64, MemoryCategory::data, "longer");
  device.reset();
  buffer = {};
  CHECK(!buffer);
}

}  // namespace
}  // namespace zt
