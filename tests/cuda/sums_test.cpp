#include <limits>

#include "core/exact_sum.h"
#include "cuda/bits_check.h"

namespace zt::test {
namespace {

// Numbers of many magnitudes and both signs, in the range of the format.
std::vector<double> wide_values(std::int64_t count, DType dtype) {
  std::vector<double> values = random_values(count, 21);
  const int range = dtype == DType::f16 ? 28 : 200;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(random_bits(22, i) % static_cast<unsigned>(range)) - range / 2);
  }
  return values;
}

// An accumulator that holds something already.
Accumulator* accumulator(Workbench& bench) {
  std::vector<std::int64_t> words(exact_sum_limbs + 1);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::int64_t>(i) - 30;
  return reinterpret_cast<Accumulator*>(bench.integers(words));
}
TensorView memory_of(Accumulator* out) { return {out, sizeof(Accumulator) / 4, DType::f32}; }

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a GPU's sums of squares have the CPU's limbs") {
  for (const DType dtype : all_dtypes) {
    // Parts of a block of 128, of a warp's tile, of a thread block's tiles; and more than one thread block.
    for (const std::int64_t count : {0, 1, 5, 127, 128, 129, 2048, 5000, 66000}) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(name_of(dtype) << ", " << count << " elements, offset " << offset);
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          const Operand in = operand(bench, wide_values(count, dtype), dtype, offset);
          Accumulator* out = accumulator(bench);
          bench.run(SumSquares{.in = in.view, .out = out});
          return {memory_of(out)};
        });
      }
    }
  }
}

TEST_CASE("a GPU's sum of squares leaves out blocks with infinities and NaN and counts these") {
  for (const DType dtype : all_dtypes) {
    check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
      std::vector<double> values = wide_values(3000, dtype);
      for (const std::size_t i : {0, 1, 2, 130, 131, 2999}) values[i] = infinite;
      for (const std::size_t i : {7, 400, 655, 2998}) values[i] = std::numeric_limits<double>::quiet_NaN();
      values[1000] = -infinite;
      Accumulator* out = accumulator(bench);
      bench.run(SumSquares{.in = bench.tensor(values, dtype), .out = out});
      return {memory_of(out)};
    });
  }
}

TEST_CASE("a GPU's sum of squares is the sum of the squares") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const TensorView in = bench.tensor(random_values(4000, 9), DType::f32);
  double expected = 0.0;
  for (const double value : bench.read(in)) expected += value * value;
  auto* words = bench.integers(std::vector<std::int64_t>(exact_sum_limbs + 1));
  bench.run(SumSquares{.in = in, .out = reinterpret_cast<Accumulator*>(words)});
  const std::vector<std::int64_t> limbs = bench.read_integers(words, exact_sum_limbs);
  const double sum = exact_sum_value(std::span<const std::int64_t, exact_sum_limbs>(limbs));
  REQUIRE(sum == Approx(expected).epsilon(1e-12));
}

TEST_CASE("a GPU's sums of values have the CPU's limbs and counts") {
  for (const std::int64_t count : {0, 1, 31, 1024, 2500}) {
    for (const bool finite : {true, false}) {
      INFO(count << " elements, finite " << finite);
      check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
        std::vector<double> values = wide_values(count, DType::f32);
        if (!finite) {
          for (std::size_t i = 0; i < values.size(); i += 300) values[i] = i % 200 == 0 ? -infinite : std::nan("");
        }
        Accumulator* out = accumulator(bench);
        bench.run(SumValues{.in = bench.tensor(values, DType::f32).as<float>(), .count = count, .out = out});
        return {memory_of(out)};
      });
    }
  }
}

TEST_CASE("a GPU's checksums are the CPU's") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t count : {0, 1, 6, 1030, 8192 + 4 * 1024 + 3}) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(name_of(dtype) << ", " << count << " elements, offset " << offset);
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          std::vector<double> values = random_values(count, 31);
          if (count > 5) values[5] = infinite;
          auto* out = bench.integers(std::vector<std::uint64_t>{0xfedcba9876543210ULL});
          bench.run(Checksum{.in = operand(bench, values, dtype, offset).view,
                             .tensor_index = 12,
                             .first_element = (std::int64_t{1} << 33) + 5,
                             .out = out});
          return {{out, 2, DType::f32}};
        });
      }
    }
  }
}

TEST_CASE("a checksum sees which element holds a value") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  std::vector<std::uint64_t> sums;
  for (const auto& values : {std::vector<double>{1.0, 2.0}, std::vector<double>{2.0, 1.0}}) {
    auto* out = bench.integers(std::vector<std::uint64_t>{0});
    bench.run(Checksum{.in = bench.tensor(values, DType::bf16), .out = out});
    sums.push_back(bench.read_integers(out, 1)[0]);
  }
  REQUIRE(sums[0] != sums[1]);
}

}  // namespace zt::test
