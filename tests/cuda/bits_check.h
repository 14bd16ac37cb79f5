// For operations whose results must be the CPU's to the bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/operation_check.h"

namespace zt::test {

constexpr DType all_dtypes[] = {DType::f32, DType::bf16, DType::f16};

// A tensor with room before and after it: `offset` elements, which may spoil its alignment, and some behind. What is
// compared is the whole, so that writing beyond the tensor shows.
struct Operand {
  TensorView whole{}, view{};
};
inline Operand operand(Workbench& bench, std::vector<double> values, DType dtype, std::int64_t offset) {
  const auto count = static_cast<std::int64_t>(values.size());
  values.insert(values.begin(), static_cast<std::size_t>(offset), 7.0);
  values.insert(values.end(), 5, 7.0);
  const TensorView whole = bench.tensor(values, dtype);
  return {whole, whole.part(offset, count)};
}

using Bytes = std::vector<std::uint8_t>;
inline Bytes bytes_of(Workbench& bench, const void* data, std::int64_t bytes) {
  return bench.read_integers(static_cast<const std::uint8_t*>(data), bytes);
}

// run: Workbench& -> the memory that must be the same on both devices after an operation.
template <typename Run>
void check_same_bits(const Run& run) {
  const auto bytes_on = [&](Device& device) {
    Workbench bench(device);
    std::vector<Bytes> bytes;
    for (const TensorView& view : std::vector<TensorView>(run(bench))) {
      bytes.push_back(bytes_of(bench, view.data, view.bytes()));
    }
    return bytes;
  };
  const auto gpu = open_gpu();
  const std::vector<Bytes> on_gpu = bytes_on(*gpu);
  cpu::CpuDevice cpu(1);
  const std::vector<Bytes> on_cpu = bytes_on(cpu);
  REQUIRE(on_gpu.size() == on_cpu.size());
  for (std::size_t k = 0; k < on_gpu.size(); ++k) {
    REQUIRE(on_gpu[k].size() == on_cpu[k].size());
    const auto differing = std::mismatch(on_gpu[k].begin(), on_gpu[k].end(), on_cpu[k].begin());
    INFO("output " << k << ", byte " << differing.first - on_gpu[k].begin() << " of " << on_gpu[k].size());
    CHECK(differing.first == on_gpu[k].end());
  }
}

}  // namespace zt::test
