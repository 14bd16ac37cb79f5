// What the tests of operations on rows share.
#pragma once

#include "cuda/operation_check.h"

namespace zt::test {

// A tensor that begins `offset` elements after an aligned address, so that no row of it is aligned.
inline TensorView shifted(Workbench& bench, const std::vector<double>& values, DType type, std::int64_t offset) {
  std::vector<double> all(static_cast<std::size_t>(offset), 0.0);
  all.insert(all.end(), values.begin(), values.end());
  return bench.tensor(all, type).part(offset, static_cast<std::int64_t>(values.size()));
}
inline TensorView shifted_output(Workbench& bench, std::int64_t count, DType type, std::int64_t offset) {
  return bench.output(count + offset, type).part(offset, count);
}

// What `results` (Workbench& -> Results) gives on a GPU and on the CPU.
template <typename Results>
struct OnBoth {
  Results gpu, cpu;
};
template <typename Results, typename Make>
OnBoth<Results> each_device(const Make& make) {
  const auto gpu = open_gpu();
  Workbench on_gpu(*gpu);
  cpu::CpuDevice cpu(1);
  Workbench on_cpu(cpu);
  return {make(on_gpu), make(on_cpu)};
}

}  // namespace zt::test
