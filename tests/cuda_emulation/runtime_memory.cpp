// The CUDA runtime's memory: device, pinned host, copies.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "device_memory.h"
#include "emulation_state.h"
#include "runtime_tables.h"
#include "stream.h"

namespace zt::emulation {
namespace {

constexpr std::size_t pinned_alignment = 4096;

struct Pinned {
  std::mutex mutex;
  std::map<std::uintptr_t, std::size_t> ranges;
};

Pinned& pinned() {
  static Pinned instance;
  return instance;
}

void add_pinned(void* memory, std::size_t bytes) {
  const std::lock_guard lock(pinned().mutex);
  pinned().ranges[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
}

bool remove_pinned(void* memory) {
  const std::lock_guard lock(pinned().mutex);
  return pinned().ranges.erase(reinterpret_cast<std::uintptr_t>(memory)) != 0;
}

// True if the range is where `kind` says it is, within one allocation.
cudaError_t check_range(const void* pointer, std::size_t bytes, bool on_device) {
  if ((device_of(pointer) >= 0) != on_device) return cudaErrorInvalidValue;
  if (on_device && bytes_behind(pointer) < bytes) {
    report("a copy of " + std::to_string(bytes) + " bytes goes beyond its allocation on device " +
           std::to_string(device_of(pointer)) + ", where " + std::to_string(bytes_behind(pointer)) + " are left");
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

// Copies within the order of `stream`; if `blocking`, it has been done on return.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                 bool blocking) {
  const bool to_device = kind == cudaMemcpyDefault ? device_of(to) >= 0
                                                   : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDefault
                               ? device_of(from) >= 0
                               : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (bytes == 0) return cudaSuccess;
  if (const auto error = check_range(to, bytes, to_device); error != cudaSuccess) return noted(error);
  if (const auto error = check_range(from, bytes, from_device); error != cudaSuccess) return noted(error);
  const auto elsewhere = [](const void* memory) { return device_of(memory) != current_device(); };
  if ((to_device && elsewhere(to)) || (from_device && elsewhere(from))) {
    return noted(cudaErrorInvalidValue);  // no peer access here
  }
  if (!from_device && !is_pinned(from) && !blocking) {
    // CUDA has read pageable memory when the call returns, but may not have written yet.
    auto staged = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
    return queue(stream, [to, staged] { std::memcpy(to, staged->data(), staged->size()); });
  }
  const cudaError_t error = queue(stream, [to, from, bytes] { std::memmove(to, from, bytes); });
  const bool to_pageable = !to_device && !is_pinned(to);
  return error == cudaSuccess && (blocking || to_pageable) ? cudaStreamSynchronize(stream) : error;
}

cudaError_t fill(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (const auto error = check_range(to, bytes, true); error != cudaSuccess) return noted(error);
  return queue(stream, [to, value, bytes] { std::memset(to, value, bytes); });
}

}  // namespace

bool is_pinned(const void* pointer) {
  const std::lock_guard lock(pinned().mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto next = pinned().ranges.upper_bound(address);
  if (next == pinned().ranges.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  return address < start + bytes;
}

}  // namespace zt::emulation

using namespace zt::emulation;

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const int device = current_device();
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  if (broken_device(device) != cudaSuccess) return noted(broken_device(device));
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (!is_to_fail(Call::allocation, device)) *memory = allocate_device_memory(device, bytes);
  return *memory == nullptr ? noted(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const int device = device_of(memory);
  if (device < 0) return noted(cudaErrorInvalidValue);
  run_all(device, false);  // CUDA waits for the device, too
  return free_device_memory(device, memory) ? cudaSuccess : noted(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const std::size_t rounded = (bytes + pinned_alignment - 1) / pinned_alignment * pinned_alignment;
  *memory = is_to_fail(Call::allocation, current_device()) ? nullptr : std::aligned_alloc(pinned_alignment, rounded);
  if (*memory == nullptr) return noted(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);
  add_pinned(*memory, bytes);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return cudaHostAlloc(memory, bytes, 0); }

cudaError_t cudaFreeHost(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (!remove_pinned(memory)) return noted(cudaErrorInvalidValue);
  run_all(current_device(), false);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  if (is_pinned(memory)) return noted(cudaErrorHostMemoryAlreadyRegistered);
  add_pinned(memory, bytes);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* memory) {
  return remove_pinned(memory) ? cudaSuccess : noted(cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy(to, from, bytes, kind, stream, false);
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind, nullptr, true);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return fill(memory, value, bytes, stream);
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) { return fill(memory, value, bytes, nullptr); }

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  if (const auto error = unusable(); error != cudaSuccess) return noted(error);
  *free_bytes = free_device_bytes(current_device());
  *total = settings().device_memory;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  attributes->device = device_of(pointer);
  attributes->type = attributes->device >= 0 ? cudaMemoryTypeDevice
                     : is_pinned(pointer)    ? cudaMemoryTypeHost
                                             : cudaMemoryTypeUnregistered;
  attributes->devicePointer = attributes->device >= 0 ? const_cast<void*>(pointer) : nullptr;
  return cudaSuccess;
}

}  // extern "C"
