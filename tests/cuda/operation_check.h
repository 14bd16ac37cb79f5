// Runs operations on a GPU and on the CPU for comparison. The same tests are built twice: on emulated GPUs, and, where
// CUDA is, for the card itself.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "device/cpu/cpu_device.h"
#include "device/device.h"
#include "device/gpu/backend.h"

extern "C" zt::GpuBackend* zerotrain_gpu_backend();

namespace zt::test {

inline std::unique_ptr<Device> open_gpu(const GpuOptions& options = {}) {
  return zerotrain_gpu_backend()->open(0, options);
}

inline double unit_roundoff(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

// Values in [-scale, scale), the same on every device.
inline std::vector<double> random_values(std::int64_t count, std::uint64_t key, double scale = 1.0) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const float uniform = uniform_from_bits(random_bits(key, static_cast<std::uint64_t>(i)));
    values[static_cast<std::size_t>(i)] = (uniform * 2.0 - 1.0) * scale;
  }
  return values;
}

// Operands in a device's memory, with what it takes to run an operation on them and read the results.
class Workbench {
 public:
  explicit Workbench(Device& device) : device_(device) {}

  // Rounded to dtype.
  TensorView tensor(const std::vector<double>& values, DType dtype) {
    const TensorView view = allocate(static_cast<std::int64_t>(values.size()), dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
    dispatch(dtype, [&]<typename T>(T*) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const T value = from_float<T>(static_cast<float>(values[i]));
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
      }
    });
    upload(view.data, bytes.data(), view.bytes());
    return view;
  }
  // An output: every bit set, which is NaN.
  TensorView output(std::int64_t count, DType dtype) {
    const TensorView view = allocate(count, dtype);
    const std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()), std::byte{0xff});
    upload(view.data, bytes.data(), view.bytes());
    return view;
  }
  float* floats(std::int64_t count) { return static_cast<float*>(output(count, DType::f32).data); }
  template <typename T>
  T* integers(const std::vector<T>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    buffers_.push_back(device_.allocate(bytes, MemoryCategory::data, "integers"));
    upload(buffers_.back().data(), values.data(), bytes);
    return buffers_.back().as<T>();
  }

  template <typename T>
  void run(const T& operation, Stream stream = Stream::compute) {
    device_.prepare(operation);
    device_.reserve_workspace();
    device_.run(stream, operation);
    device_.synchronize(stream);
  }

  std::vector<double> read(ConstTensorView view) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
    download(bytes.data(), view.data, view.bytes());
    std::vector<double> values(static_cast<std::size_t>(view.count));
    dispatch(view.dtype, [&]<typename T>(T*) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof value);
        values[i] = to_float(value);
      }
    });
    return values;
  }
  template <typename T>
  std::vector<T> read_integers(const T* data, std::int64_t count) {
    std::vector<T> values(static_cast<std::size_t>(count));
    download(values.data(), data, count * static_cast<std::int64_t>(sizeof(T)));
    return values;
  }
  Device& device() { return device_; }

 private:
  TensorView allocate(std::int64_t count, DType dtype) {
    const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(dtype));
    buffers_.push_back(device_.allocate(bytes, MemoryCategory::data, "operand"));
    return {buffers_.back().data(), count, dtype};
  }
  void upload(void* to, const void* from, std::int64_t bytes) {
    device_.copy(Stream::compute, to, from, bytes);
    device_.synchronize(Stream::compute);
  }
  void download(void* to, const void* from, std::int64_t bytes) {
    device_.copy(Stream::compute, to, from, bytes);
    device_.synchronize(Stream::compute);
  }

  Device& device_;
  std::vector<Buffer> buffers_;
};

// Calls `results` (Workbench& -> vector of doubles) with a workbench on the GPU, then on the CPU.
struct BothResults {
  std::vector<double> gpu, cpu;
};
template <typename Results>
BothResults on_both(const Results& results, const GpuOptions& options = {}) {
  BothResults both;
  const auto gpu = open_gpu(options);
  Workbench on_gpu(*gpu);
  both.gpu = results(on_gpu);
  cpu::CpuDevice cpu(1);
  Workbench on_cpu(cpu);
  both.cpu = results(on_cpu);
  return both;
}

// |actual - expected| <= absolute + relative |expected|, both NaN, or the same infinity, for all elements.
inline void check_close(const std::vector<double>& actual, const std::vector<double>& expected, double relative,
                        double absolute) {
  REQUIRE(actual.size() == expected.size());
  std::size_t worst = 0;
  double excess = -1.0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    if (actual[i] == expected[i]) continue;
    const double allowed = absolute + relative * std::abs(expected[i]);
    const double distance = std::abs(actual[i] - expected[i]);
    const double here = std::isfinite(distance) ? distance - allowed : INFINITY;
    if (here > excess) {
      excess = here;
      worst = i;
    }
  }
  if (excess > 0.0) {
    INFO("element " << worst << " of " << actual.size() << ": " << actual[worst] << " instead of " << expected[worst]);
    CHECK(excess <= 0.0);
  } else {
    CHECK(excess <= 0.0);
  }
}
inline void check_equal(const std::vector<double>& actual, const std::vector<double>& expected) {
  check_close(actual, expected, 0.0, 0.0);
}

}  // namespace zt::test
