// Operands of operations in a device's memory.
#pragma once

#include <string>
#include <vector>

#include "core/random.h"
#include "device/device.h"

namespace zt::bench {

class Operands {
 public:
  explicit Operands(Device& device) : device_(device) {}

  // Values of a normal distribution.
  TensorView random(std::int64_t count, DType dtype, float scale = 1.0F) {
    const TensorView view = empty(count, dtype);
    run(Initialize{
        .out = view, .distribution = Distribution::normal, .scale = scale, .key = ++keys_, .first_element = 0});
    return view;
  }
  TensorView empty(std::int64_t count, DType dtype) {
    buffers_.push_back(
        device_.allocate(count * static_cast<std::int64_t>(size_of(dtype)), MemoryCategory::activations, "operand"));
    return buffers_.back().view(dtype);
  }
  float* floats(std::int64_t count) { return static_cast<float*>(empty(count, DType::f32).data); }
  // In [0, limit), uniform.
  const std::int32_t* tokens(std::int64_t count, std::int64_t limit) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::int32_t>(random_bits(7, i) % static_cast<std::uint64_t>(limit));
    }
    buffers_.push_back(device_.allocate(count * 4, MemoryCategory::data, "tokens"));
    device_.copy(Stream::compute, buffers_.back().data(), values.data(), count * 4);
    device_.synchronize(Stream::compute);
    return buffers_.back().as<std::int32_t>();
  }
  template <typename T>
  T* numbers() {
    buffers_.push_back(device_.allocate(sizeof(T), MemoryCategory::data, "number"));
    return buffers_.back().as<T>();
  }
  // Now, for operands that another operation makes.
  void run(const Operation& operation) {
    device_.prepare(operation);
    device_.reserve_workspace();
    device_.run(Stream::compute, operation);
  }

 private:
  Device& device_;
  std::vector<Buffer> buffers_;
  std::uint64_t keys_ = 0;
};

}  // namespace zt::bench
