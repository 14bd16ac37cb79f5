// Device memory that tests hold.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "catch_compat.h"

namespace zt::emulation {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory_), count * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(memory_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~DeviceArray() { cudaFree(memory_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return memory_; }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    REQUIRE(cudaMemcpy(result.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return result;
  }

 private:
  T* memory_ = nullptr;
  std::size_t count_;
};

// Numbers between -1 and 1, the same for the same seed.
std::vector<float> numbers(std::size_t count, unsigned seed);

}  // namespace zt::emulation
