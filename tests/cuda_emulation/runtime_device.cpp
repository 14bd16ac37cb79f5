// The CUDA runtime's devices, errors and attributes of kernels. The figures are an H200's.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "block.h"
#include "device_memory.h"
#include "emulation_state.h"
#include "runtime_tables.h"
#include "stream.h"

namespace zt::emulation {
namespace {

constexpr int driver_version = 13000;
constexpr int old_driver_version = 12020;
constexpr int multiprocessors = 132;
constexpr int threads_of_multiprocessor = 2048;
constexpr int blocks_of_multiprocessor = 32;
constexpr std::size_t shared_of_multiprocessor = 228 << 10;
constexpr std::size_t shared_of_system = 1 << 10;  // taken from every block

thread_local int device_of_thread = 0;

struct Limits {
  std::mutex mutex;
  std::map<const void*, std::size_t> shared;
};

Limits& limits() {
  static Limits instance;
  return instance;
}

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr std::array error_texts = {
    ErrorText{cudaSuccess, "cudaSuccess", "no error"},
    ErrorText{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    ErrorText{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    ErrorText{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    ErrorText{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
              "CUDA driver version is insufficient for CUDA runtime version"},
    ErrorText{cudaErrorStubLibrary, "cudaErrorStubLibrary", "CUDA driver is the library for linking"},
    ErrorText{cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
              "no kernel image is available for execution on the device"},
    ErrorText{cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    ErrorText{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    ErrorText{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    ErrorText{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    ErrorText{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    ErrorText{cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
              "too many resources requested for launch"},
    ErrorText{cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    ErrorText{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    ErrorText{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
              "part or all of the requested memory range is already mapped"},
    ErrorText{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
              "pointer does not correspond to a registered memory region"},
    ErrorText{cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"}};

const ErrorText* text_of_error(cudaError_t error) {
  const auto* found = std::find_if(error_texts.begin(), error_texts.end(),
                                   [error](const ErrorText& entry) { return entry.error == error; });
  return found == error_texts.end() ? nullptr : found;
}

}  // namespace

int current_device() { return device_of_thread; }

cudaError_t unusable() {
  switch (settings().driver) {
    case Driver::missing:
    case Driver::too_old: return cudaErrorInsufficientDriver;
    case Driver::for_linking: return cudaErrorStubLibrary;
    case Driver::not_ready: return cudaErrorSystemNotReady;
    case Driver::present: break;
  }
  return settings().devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

std::size_t shared_limit_of(const void* function) {
  const std::lock_guard lock(limits().mutex);
  const auto found = limits().shared.find(function);
  return found == limits().shared.end() ? plain_shared_bytes : found->second;
}

}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);  // *count stays, as with CUDA
  *count = settings().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  if (device < 0 || device >= settings().devices) return noted(cudaErrorInvalidDevice);
  device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  run_all(current_device(), false);
  break_device(current_device(), cudaSuccess);
  take_last_error(true);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= settings().devices) return noted(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated GPU");
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->totalGlobalMem = settings().device_memory;
  properties->sharedMemPerBlock = plain_shared_bytes;
  properties->sharedMemPerBlockOptin = largest_shared_bytes;
  properties->sharedMemPerMultiprocessor = shared_of_multiprocessor;
  properties->reservedSharedMemPerBlock = shared_of_system;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = warp_size;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = threads_of_multiprocessor;
  properties->maxBlocksPerMultiProcessor = blocks_of_multiprocessor;
  properties->multiProcessorCount = multiprocessors;
  properties->major = settings().capability / 10;
  properties->minor = settings().capability % 10;
  properties->pciBusID = device + 1;
  properties->l2CacheSize = 60 << 20;
  properties->concurrentKernels = properties->unifiedAddressing = 1;
  properties->asyncEngineCount = 3;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  if (const auto error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = properties.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = properties.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = properties.multiProcessorCount; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(properties.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = properties.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrL2CacheSize: *value = properties.l2CacheSize; break;
    default: return noted(cudaErrorNotSupported);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (device < 0 || device >= settings().devices) return noted(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", static_cast<unsigned>(device + 1));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  switch (settings().driver) {
    case Driver::missing:
    case Driver::for_linking: *version = 0; break;
    case Driver::too_old: *version = old_driver_version; break;
    case Driver::present:
    case Driver::not_ready: *version = driver_version; break;
  }
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return take_last_error(true); }
cudaError_t cudaPeekAtLastError() { return take_last_error(false); }

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* found = text_of_error(error);
  return found == nullptr ? "unrecognized error code" : found->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* found = text_of_error(error);
  return found == nullptr ? "unrecognized error code" : found->text;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;  // a hint
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return noted(cudaErrorInvalidValue);
  if (value < 0 || static_cast<std::size_t>(value) > largest_shared_bytes) return noted(cudaErrorInvalidValue);
  const std::lock_guard lock(limits().mutex);
  limits().shared[function] = std::max(static_cast<std::size_t>(value), plain_shared_bytes);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit_of(function));
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}

// By threads and shared memory; registers are unknown here.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                   std::size_t shared_bytes, unsigned) {
  if (block_size < 1 || block_size > 1024) return noted(cudaErrorInvalidValue);
  const int threads = (block_size + warp_size - 1) / warp_size * warp_size;
  const auto by_shared = static_cast<int>(shared_of_multiprocessor / (shared_bytes + shared_of_system));
  const bool fits = shared_bytes <= shared_limit_of(function);
  *blocks = fits ? std::min({blocks_of_multiprocessor, threads_of_multiprocessor / threads, by_shared}) : 0;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                          std::size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}

}  // extern "C"
