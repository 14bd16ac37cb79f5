// The runtime's slice: devices, memory, errors, requested failures.
#include <csignal>
#include <cstring>
#include <string>

#include "death.h"
#include "device/cuda/gpu.h"
#include "device_array.h"
#include "emulation.h"
#include "emulation_state.h"
#include "kernels/kernels.h"
#include "sanitizer.h"

using namespace zt::emulation;
using zt::samples::Fault;

namespace {

Settings with_devices(int devices) {
  Settings wanted = settings();
  wanted.devices = devices;
  return wanted;
}

}  // namespace

TEST_CASE("devices are counted from 0 to 8") {
  for (const int devices : {1, 3, 8}) {
    const Configured configured(with_devices(devices));
    int count = -1;
    CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
    CHECK(count == devices);
    CHECK(cudaSetDevice(devices - 1) == cudaSuccess);
    CHECK(cudaSetDevice(devices) == cudaErrorInvalidDevice);
    CHECK(cudaSetDevice(0) == cudaSuccess);
  }
  CHECK_THROWS(configure(with_devices(9)));
}

TEST_CASE("without a device all calls say so") {
  const Configured configured(with_devices(0));
  int count = 7;
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 7);
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream) == cudaErrorNoDevice);
  CHECK(zt::samples::faulty(Fault::none, nullptr, nullptr) == cudaErrorNoDevice);
  CHECK(cudaMalloc(&memory, 4) == cudaErrorNoDevice);
  CHECK(cudaGetLastError() == cudaErrorNoDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(std::string(cudaGetErrorName(cudaErrorNoDevice)) == "cudaErrorNoDevice");
  CHECK(std::string(cudaGetErrorString(cudaErrorNoDevice)) == "no CUDA-capable device is detected");
}

TEST_CASE("a device has the memory that is asked for, and freed memory can be had again") {
  Settings wanted = settings();
  wanted.device_memory = 1 << 20;
  const Configured configured(wanted);
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
  CHECK((total == 1 << 20 && free_bytes == total));
  for (int round = 0; round < 3; ++round) {
    const DeviceArray<char> most(900 << 10);
    CHECK(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(free_bytes == total - (900 << 10));
    void* more = nullptr;
    CHECK(cudaMalloc(&more, 200 << 10) == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    void* rest = nullptr;
    CHECK(cudaMalloc(&rest, 100 << 10) == cudaSuccess);
    CHECK(reinterpret_cast<std::uintptr_t>(rest) % 256 == 0);
    CHECK(cudaFree(rest) == cudaSuccess);
  }
}

TEST_CASE("host code that touches device memory ends with a message") {
  const DeviceArray<float> array(std::vector<float>(10, 1.0F));
  const Ending reads = ending_of([&] {
    if (*static_cast<volatile float*>(array.get()) == 1.0F) _exit(3);
  });
  CHECK(reads.signal == SIGSEGV);
  CHECK(reads.text.find("is memory of device 0; code that is no operation of that device touched it") !=
        std::string::npos);
  const Ending writes = ending_of([&] { *static_cast<volatile float*>(array.get()) = 2.0F; });
  CHECK(writes.signal == SIGSEGV);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  const Ending host_function = ending_of([&] {
    cudaLaunchHostFunc(
        stream, [](void* memory) { *static_cast<volatile float*>(memory) = 2.0F; }, array.get());
    cudaStreamSynchronize(stream);
  });
  CHECK(host_function.signal == SIGSEGV);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  Settings open = settings();
  open.protect = false;
  const Configured configured(open);
  const DeviceArray<float> unprotected(std::vector<float>(10, 1.0F));
  CHECK(*static_cast<volatile float*>(unprotected.get()) == 1.0F);
}

TEST_CASE("the n-th allocation fails") {
  fail_nth(Call::allocation, 3);
  std::vector<void*> memory(4, nullptr);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    CHECK(cudaMalloc(&memory[i], 100) == (i == 2 ? cudaErrorMemoryAllocation : cudaSuccess));
  }
  for (void* each : memory) CHECK(cudaFree(each) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("the n-th launch fails, on the device that is meant") {
  const Configured configured(with_devices(2));
  const DeviceArray<float> output(256);
  fail_nth(Call::launch, 1, 1);
  CHECK(zt::samples::faulty(Fault::none, output.get(), nullptr) == cudaSuccess);
  fail_nth(Call::launch, 2, 0);
  CHECK(zt::samples::faulty(Fault::none, output.get(), nullptr) == cudaSuccess);
  CHECK(zt::samples::faulty(Fault::none, output.get(), nullptr) == cudaErrorLaunchOutOfResources);
  CHECK(zt::samples::faulty(Fault::none, output.get(), nullptr) == cudaSuccess);  // such an error does not stay
  CHECK(cudaGetLastError() == cudaSuccess);                                       // the launch has taken it
}

TEST_CASE("the environment's request for a failure reaches a program") {
  setenv("ZEROTRAIN_EMULATION_ORDER", "backwards", 1);
  // Settings are read once, at the first use, which is over here: a new process reads them.
  const Ending ending = ending_of([] { execl("/proc/self/exe", "test", "devices are counted*", nullptr); });
  unsetenv("ZEROTRAIN_EMULATION_ORDER");
  CHECK(ending.code != 0);
  setenv("ZEROTRAIN_EMULATION_FAIL", "allocation:1", 1);
  const Ending failing = ending_of([] { execl("/proc/self/exe", "test", "what a kernel leaves*", nullptr); });
  unsetenv("ZEROTRAIN_EMULATION_FAIL");
  CHECK(failing.code != 0);
  CHECK(ending_of([] { execl("/proc/self/exe", "test", "what a kernel leaves*", nullptr); }).code == 0);
}

TEST_CASE("more than 48 KiB of dynamic shared memory have to be asked for") {
  const DeviceArray<float> x(std::vector<float>(128, 1.0F));
  const DeviceArray<float> y(128);
  CHECK(zt::samples::add_one_async(y.get(), x.get(), 128, 48 << 10, nullptr) == cudaSuccess);
  CHECK(zt::samples::add_one_async(y.get(), x.get(), 128, (48 << 10) + 1, nullptr) == cudaErrorInvalidValue);
  REQUIRE(zt::samples::allow_shared_memory(100 << 10) == cudaSuccess);
  CHECK(zt::samples::add_one_async(y.get(), x.get(), 128, 100 << 10, nullptr) == cudaSuccess);
  CHECK(zt::samples::add_one_async(y.get(), x.get(), 128, (100 << 10) + 1, nullptr) == cudaErrorInvalidValue);
  CHECK(zt::samples::allow_shared_memory(228 << 10) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("launches of impossible sizes are refused") {
  void (*const nothing)() = [] {};
  CHECK(zt::gpu::launch(nothing, 1, 1024, 0, nullptr) == cudaSuccess);
  CHECK(zt::gpu::launch(nothing, 1, 1025, 0, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(zt::gpu::launch(nothing, 1, dim3(64, 17), 0, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(zt::gpu::launch(nothing, dim3(1, 65536), 32, 0, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(zt::gpu::launch(nothing, 0, 32, 0, nullptr) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("a launch finds the error that an earlier call has left") {
  CHECK(cudaSetDevice(100) == cudaErrorInvalidDevice);
  void (*const nothing)() = [] {};
  CHECK(zt::gpu::launch(nothing, 1, 32, 0, nullptr) == cudaErrorInvalidDevice);
  CHECK(zt::gpu::launch(nothing, 1, 32, 0, nullptr) == cudaSuccess);
}

TEST_CASE("occupancy follows threads and shared memory") {
  int blocks = 0;
  CHECK(zt::samples::occupancy(&blocks, 128, 0) == cudaSuccess);
  CHECK(blocks == 2048 / 128);
  CHECK(zt::samples::occupancy(&blocks, 1024, 0) == cudaSuccess);
  CHECK(blocks == 2);
  CHECK(zt::samples::occupancy(&blocks, 32, 40 << 10) == cudaSuccess);
  CHECK(blocks == 228 / (40 + 1));
}

TEST_CASE("copies stay within their allocations and go where their kind says") {
  const DeviceArray<float> array(10);
  std::vector<float> host(20, 1.0F);
  CHECK(cudaMemcpy(array.get(), host.data(), 40, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  const Findings findings;
  CHECK(cudaMemcpy(array.get(), host.data(), 44, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  REQUIRE(findings.all().size() == 1);
  CHECK(findings.all()[0].find("a copy of 44 bytes goes beyond its allocation") == 0);
  cudaGetLastError();
}

TEST_CASE("a kernel that writes beyond an allocation is found") {
  const Ending ending = ending_of([] {
    void* memory = nullptr;
    cudaMalloc(&memory, 255 * sizeof(float));  // the kernel writes 256
    zt::samples::faulty(Fault::none, static_cast<float*>(memory), nullptr);
    cudaFree(memory);
  });
  CHECK((ending.signal == SIGABRT || ending.code != 0));
  const char* expected =
      has_address_sanitizer ? "faulty.cu:" : "wrote beyond the end of an allocation of 1020 bytes on device 0";
  CHECK(ending.text.find(expected) != std::string::npos);
}
