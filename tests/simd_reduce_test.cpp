// Sums over rows, exact sums and checksums.
#include <algorithm>

#include "core/exact_sum.h"
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

TEST_CASE("gradients of biases are the sums over rows, for every shape and dtype") {
  const std::uint64_t seed = 20;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const DType out_type : all_dtypes) {
        for (int round = 0; round < 6; ++round) {
          const std::int64_t rows = round == 0 ? 0 : round == 1 ? 129 : between(random, 1, 200);
          const std::int64_t columns = round == 2 ? 2100 : between(random, 1, 150);
          const bool add = random() % 2 == 0;
          INFO("rows " << rows << ", columns " << columns << ", add " << add);
          const std::vector<float> values = rounded(type, normals(random, rows * columns));
          const std::vector<float> before = rounded(out_type, normals(random, columns));
          require_same_everywhere([&](Setup setup) {
            const Tensor d_out(type, values, setup.offset);
            Tensor d_bias(out_type, before, setup.offset);
            setup.run(BiasGradient{
                .d_out = d_out.view(), .d_bias = d_bias.view(), .rows = rows, .columns = columns, .add = add});
            for (std::int64_t c = 0; c < columns; ++c) {
              double sum = 0.0;
              double magnitude = 0.0;
              for (std::int64_t r = 0; r < rows; ++r) {
                const double value = values[static_cast<std::size_t>(r * columns + c)];
                sum += value;
                magnitude += std::abs(value);
              }
              // Chains of at most 64 + 4 additions, each rounding by 2^-24 of what has been added up.
              double error = 70 * 0x1p-24 * magnitude;
              if (add) {
                error += 1.01 * unit_roundoff(out_type) * std::abs(sum);  // the sum is rounded before it is added
                sum += before[static_cast<std::size_t>(c)];
              }
              require_close(d_bias.get(c), sum, out_type, 0.0, error);
            }
            return collect(d_bias);
          });
        }
      }
    }
  });
}

TEST_CASE("sums over rows pass on NaN and infinities") {
  for_instruction_sets([] {
    std::vector<float> values(100 * 3, 1.0F);
    values[7 * 3] = not_a_number;
    values[90 * 3 + 1] = -infinite;
    const Tensor d_out(DType::bf16, values);
    Tensor d_bias(DType::bf16, 3);
    Setup{}.run(BiasGradient{.d_out = d_out.view(), .d_bias = d_bias.view(), .rows = 100, .columns = 3});
    REQUIRE(std::isnan(d_bias.get(0)));
    REQUIRE(d_bias.get(1) == -infinite);
    REQUIRE(d_bias.get(2) == 100.0F);
  });
}

namespace {

// The definition in operations.h, one element after the other.
Accumulator sum_squares_plainly(const std::vector<float>& values) {
  Accumulator out;
  for (std::size_t first = 0; first < values.size(); first += 128) {
    double partial[8] = {};
    std::int64_t not_finite = 0;
    for (std::size_t i = first; i < std::min(first + 128, values.size()); ++i) {
      const double x = values[i];
      partial[i % 8] += x * x;
      not_finite += std::isfinite(values[i]) ? 0 : 1;
    }
    out.not_finite += not_finite;
    if (not_finite != 0) continue;
    exact_sum_add(out.limbs, ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
                                 ((partial[4] + partial[5]) + (partial[6] + partial[7])));
  }
  return out;
}

}  // namespace

TEST_CASE("sums of squares follow their definition to the bit and count what is not finite") {
  Random random(21);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : {0, 1, 7, 8, 127, 128, 129, 1000, 40000, 70001}) {
        std::vector<float> values = rounded(type, normals(random, size));
        if (size == 1000) values[300] = infinite;
        if (size == 70001) values[70000] = not_a_number;
        if (size == 40000) values[0] = values[1] = not_a_number;
        const Accumulator expected = sum_squares_plainly(values);
        require_same_everywhere([&](Setup setup) {
          const Tensor in(type, values, setup.offset);
          Accumulator out;
          setup.run(SumSquares{.in = in.view(), .out = &out});
          REQUIRE(out.not_finite == expected.not_finite);
          REQUIRE(exact_sum_value(out.limbs) == exact_sum_value(expected.limbs));
          setup.run(SumSquares{.in = in.view(), .out = &out});  // adds
          REQUIRE(exact_sum_value(out.limbs) == 2 * exact_sum_value(expected.limbs));
          return Bytes();
        });
      }
    }
  });
}

TEST_CASE("sums of squares hold the largest and the smallest floats") {
  for_instruction_sets([] {
    const Tensor large(DType::f32, std::vector<float>(256, 3e38F));
    Accumulator out;
    Setup{}.run(SumSquares{.in = large.view(), .out = &out});
    REQUIRE(out.not_finite == 0);
    const double square = static_cast<double>(3e38F) * static_cast<double>(3e38F);
    REQUIRE(exact_sum_value(out.limbs) == Approx(256 * square).epsilon(1e-15));
    const Tensor small(DType::f32, std::vector<float>{0x1p-149F});
    Accumulator tiny;
    Setup{}.run(SumSquares{.in = small.view(), .out = &tiny});
    REQUIRE(exact_sum_value(tiny.limbs) == 0x1p-298);
  });
}

TEST_CASE("sums of values are exact") {
  for_instruction_sets([] {
    std::vector<float> values(100000, 0x1p-40F);
    values[5] = 1e30F;
    values[99000] = -1e30F;
    values[50] = infinite;
    values[51] = not_a_number;
    require_same_everywhere([&](Setup setup) {
      Tensor in(DType::f32, values, setup.offset);
      Accumulator out;
      setup.run(SumValues{.in = in.floats(), .count = in.count(), .out = &out});
      REQUIRE(out.not_finite == 2);
      REQUIRE(exact_sum_value(out.limbs) == 99996 * 0x1p-40);
      return Bytes();
    });
  });
}

TEST_CASE("checksums follow their definition and add up over pieces") {
  Random random(22);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : {0, 1, 17, 600, 40000}) {
        const std::vector<float> values = rounded(type, normals(random, size));
        std::uint64_t expected = 5;
        for (std::uint64_t i = 0; i < values.size(); ++i) {
          const std::uint64_t place = (std::uint64_t{77} << 40) ^ (std::uint64_t{1000} + i);
          expected += mix64(mix64(place) ^ std::bit_cast<std::uint32_t>(values[i]));
        }
        require_same_everywhere([&](Setup setup) {
          const Tensor in(type, values, setup.offset);
          std::uint64_t sum = 5;
          const std::int64_t half = size / 2;
          const ConstTensorView view = in.view();
          setup.run(Checksum{.in = view.part(0, half), .tensor_index = 77, .first_element = 1000, .out = &sum});
          setup.run(Checksum{
              .in = view.part(half, size - half), .tensor_index = 77, .first_element = 1000 + half, .out = &sum});
          REQUIRE(sum == expected);
          return Bytes();
        });
      }
    }
  });
}
