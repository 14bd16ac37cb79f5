#include <limits>

#include "cuda/bits_check.h"

namespace zt::test {

TEST_CASE("a GPU fills every element with the rounded value, and nothing else") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t count : {0, 1, 7, 8, 250, 4096 + 9}) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(name_of(dtype) << ", " << count << " elements, offset " << offset);
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          const Operand out = operand(bench, std::vector<double>(static_cast<std::size_t>(count), 3.0), dtype, offset);
          bench.run(Fill{.out = out.view, .value = 0.1F});
          return {out.whole};
        });
      }
    }
  }
}

TEST_CASE("a GPU converts between formats to the CPU's bits, NaN and subnormals included") {
  // Every number of 16 bits; in fp32 those with few bits, their neighbours, ties, and some of any kind.
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<std::uint32_t> floats;
  for (std::uint32_t i = 0; i < 65536; i += 7) {
    for (const std::uint32_t rest : {0x0000U, 0x0001U, 0x1000U, 0x7fffU, 0x8000U, 0xf000U}) {
      floats.push_back(i << 16 | rest);
    }
  }
  for (std::uint64_t i = 0; i < 5001; ++i) floats.push_back(random_bits(5, i));
  for (const DType from : all_dtypes) {
    for (const DType to : all_dtypes) {
      INFO(name_of(from) << " to " << name_of(to));
      for (const std::int64_t offset : {0, 1}) {
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          const auto count = static_cast<std::int64_t>(from == DType::f32 ? floats.size() : halves.size());
          const TensorView in{from == DType::f32 ? static_cast<void*>(bench.integers(floats))
                                                 : static_cast<void*>(bench.integers(halves)),
                              count, from};
          const TensorView out = bench.output(count, to);
          bench.run(Cast{.in = in.part(offset, count - offset), .out = out.part(0, count - offset)});
          return {out};
        });
      }
    }
  }
}

TEST_CASE("a GPU converts few elements, none, and memory onto itself") {
  for (const std::int64_t count : {0, 1, 3, 4, 5, 1025}) {
    check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
      const Operand in = operand(bench, random_values(count, 3), DType::f32, 0);
      const Operand out = operand(bench, random_values(count, 4), DType::bf16, 0);
      bench.run(Cast{.in = in.view, .out = out.view});
      bench.run(Cast{.in = in.view, .out = in.view});
      return {in.whole, out.whole};
    });
  }
}

}  // namespace zt::test
