// The foundations: number formats, random numbers, exact sums, accounting of memory.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "catch_compat.h"
#include "core/dtype.h"
#include "core/exact_sum.h"
#include "core/memory.h"
#include "core/random.h"
#include "core/tensor.h"

using namespace zt;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double exact(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

// Random doubles of any size and sign.
double any_double(std::mt19937_64& random, int lowest, int highest) {
  const int exponent = std::uniform_int_distribution<int>(lowest, highest)(random);
  const double mantissa = std::uniform_real_distribution<double>(-1.0, 1.0)(random);
  return std::ldexp(mantissa, exponent);
}

}  // namespace

TEST_CASE("an exact sum does not depend on the order of its values") {
  const std::uint64_t seed = 1;
  std::mt19937_64 random(seed);
  INFO("seed " << seed);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 500; ++i) values.push_back(any_double(random, -1070, 1000));
    const double expected = exact(values);
    for (int permutation = 0; permutation < 5; ++permutation) {
      std::shuffle(values.begin(), values.end(), random);
      REQUIRE(exact(values) == expected);
    }
  }
}

TEST_CASE("sums of limbs of several accumulators are the sum of all values") {
  std::mt19937_64 random(2);
  ExactSum whole;
  std::array<ExactSum, 7> parts;
  for (int i = 0; i < 7000; ++i) {
    const double value = any_double(random, -300, 300);
    whole.add(value);
    parts[static_cast<std::size_t>(i) % 7].add(value);
  }
  ExactSum total;
  for (ExactSum& part : parts) {
    for (std::size_t i = 0; i < exact_sum_limbs; ++i) total.limbs()[i] += part.limbs()[i];
  }
  REQUIRE(total.value() == whole.value());
}

TEST_CASE("large values cancel without leaving a trace in an exact sum") {
  REQUIRE(exact({1e300, 1.0, -1e300}) == 1.0);
  REQUIRE(exact({1e300, 1e-300, -1e300, -1e-300}) == 0.0);
  REQUIRE(exact({0x1p1023, 0x1p-1074, -0x1p1023}) == 0x1p-1074);
  REQUIRE(exact({0x1p53, 1.0, 1.0, -0x1p53}) == 2.0);
  std::mt19937_64 random(3);
  std::vector<double> values = {0.1};
  for (int i = 0; i < 1000; ++i) {
    const double value = any_double(random, -500, 500);
    values.push_back(value);
    values.push_back(-value);
  }
  std::shuffle(values.begin(), values.end(), random);
  REQUIRE(exact(values) == 0.1);
}

TEST_CASE("an exact sum of one value is that value") {
  const double smallest = std::numeric_limits<double>::denorm_min();
  const double largest = std::numeric_limits<double>::max();
  for (const double value :
       {0.0, 1.0, smallest, 3 * smallest, 0x1p-1022, 0x1.fffffffffffffp-1023, largest, 1.0 / 3.0}) {
    REQUIRE(exact({value}) == value);
    REQUIRE(exact({-value}) == -value);
  }
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) REQUIRE(exact({value}) == value);
  }
}

TEST_CASE("exact sums hold subnormal and huge totals, and overflow to infinity") {
  const double smallest = std::numeric_limits<double>::denorm_min();
  REQUIRE(exact(std::vector<double>(1000, smallest)) == 1000 * smallest);
  const double largest = std::numeric_limits<double>::max();
  REQUIRE(exact({largest, largest}) == infinite);
  REQUIRE(exact({-largest, -largest}) == -infinite);
  REQUIRE(exact({largest, largest, -largest}) == largest);
}

TEST_CASE("negative totals are the opposite of positive ones") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(any_double(random, -60, 60));
    const double sum = exact(values);
    for (double& value : values) value = -value;
    REQUIRE(exact(values) == -sum);
  }
}

TEST_CASE("exact sums equal sums of integers, and wider floating point where that is exact") {
  std::mt19937_64 random(6);
  for (int round = 0; round < 100; ++round) {
    std::int64_t integer = 0;
    ExactSum sum;
    long double wide = 0.0L;  // 64 bits of mantissa: exact for these
    ExactSum fractions;
    for (int i = 0; i < 1000; ++i) {
      const auto value = static_cast<std::int64_t>(random() >> 24) - (std::int64_t{1} << 39);
      integer += value;
      sum.add(static_cast<double>(value));
      const double fraction = std::ldexp(static_cast<double>(static_cast<std::int64_t>(random() >> 16)), -60);
      wide += static_cast<long double>(i % 2 == 0 ? fraction : -fraction);
      fractions.add(i % 2 == 0 ? fraction : -fraction);
    }
    REQUIRE(sum.value() == static_cast<double>(integer));
    // The value is a sum of digits from the top, which may round in the last place.
    const auto expected = static_cast<double>(wide);
    REQUIRE(std::abs(fractions.value() - expected) <= std::abs(expected) * 0x1p-52);
  }
}

TEST_CASE("a million additions of one sign do not overflow the limbs") {
  ExactSum sum;
  const double value = 0x1.fffffffffffffp0;
  for (int i = 0; i < 1000000; ++i) sum.add(value);
  REQUIRE(sum.value() == Approx(value * 1e6).epsilon(1e-15));
}

TEST_CASE("bf16 and fp16 survive the way to float and back") {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float from_bf16 = to_float(bf16_t{bits});
    const float from_f16 = to_float(f16_t{bits});
    if (std::isnan(from_bf16)) {
      REQUIRE(std::isnan(to_float(from_float<bf16_t>(from_bf16))));
    } else if (from_float<bf16_t>(from_bf16).bits != bits) {
      REQUIRE(from_float<bf16_t>(from_bf16).bits == bits);
    }
    if (std::isnan(from_f16)) {
      REQUIRE(std::isnan(to_float(from_float<f16_t>(from_f16))));
    } else if (from_float<f16_t>(from_f16).bits != bits) {
      REQUIRE(from_float<f16_t>(from_f16).bits == bits);
    }
  }
}

TEST_CASE("rounding to 16 bits goes to the nearest, ties to even") {
  // Neighbours are found by their bits; the midpoint is exact in float.
  const auto check = [](auto type, std::uint32_t last_finite) {
    using T = decltype(type);
    for (std::uint32_t bits = 0; bits < last_finite; ++bits) {
      const T low{static_cast<std::uint16_t>(bits)};
      const T high{static_cast<std::uint16_t>(bits + 1)};
      const float middle = to_float(low) + (to_float(high) - to_float(low)) / 2;
      const T even = bits % 2 == 0 ? low : high;
      const bool right = from_float<T>(middle).bits == even.bits &&
                         from_float<T>(std::nextafter(middle, 0.0F)).bits == low.bits &&
                         from_float<T>(std::nextafter(middle, std::numeric_limits<float>::max())).bits == high.bits &&
                         from_float<T>(-middle).bits == (even.bits | 0x8000U);
      if (!right) {
        INFO("bits " << bits);
        REQUIRE(right);
      }
    }
  };
  check(f16_t{}, 0x7bff);
  check(bf16_t{}, 0x7f00);
}

TEST_CASE("what does not fit 16 bits becomes infinite") {
  REQUIRE(from_float<f16_t>(65504.0F).bits == 0x7bff);
  REQUIRE(from_float<f16_t>(65519.996F).bits == 0x7bff);
  REQUIRE(from_float<f16_t>(65520.0F).bits == 0x7c00);
  REQUIRE(from_float<f16_t>(-1e30F).bits == 0xfc00);
  REQUIRE(from_float<bf16_t>(3.4e38F).bits == 0x7f80);
  REQUIRE(from_float<bf16_t>(-3.4e38F).bits == 0xff80);
  REQUIRE(from_float<f16_t>(0x1p-25F).bits == 0);
  REQUIRE(from_float<f16_t>(0x1.000002p-25F).bits == 1);
}

TEST_CASE("Philox gives the published words for the key and counter of zeros") {
  const auto words = philox(0, 0);
  REQUIRE(words == std::array<std::uint32_t, 4>{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
  REQUIRE(random_bits(0, 2) == 0xbc57ac4cU);
  REQUIRE(random_bits(0, 4) == philox(0, 1)[0]);
}

TEST_CASE("random words depend on every bit of key and counter") {
  std::set<std::uint32_t> seen;
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(philox(std::uint64_t{1} << bit, 0)[0]);
    seen.insert(philox(0, std::uint64_t{1} << bit)[0]);
  }
  REQUIRE(seen.size() == 128);
}

TEST_CASE("uniform numbers lie in [0, 1) and fill it evenly") {
  REQUIRE(uniform_from_bits(0) == 0.0F);
  REQUIRE(uniform_from_bits(0xffffffffU) < 1.0F);
  std::array<int, 16> counts{};
  constexpr int draws = 160000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    ++counts[static_cast<std::size_t>(uniform_from_bits(random_bits(17, i)) * 16.0F)];
  }
  for (const int count : counts) REQUIRE(std::abs(count - draws / 16) < 500);  // 5 standard deviations
}

TEST_CASE("keys derived from different names and numbers differ") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 1000; ++i) keys.insert(derive_key(42, i));
  for (const char* name : {"", "a", "b", "ab", "ba", "wte.weight", "wpe.weight"}) keys.insert(derive_key(42, name));
  REQUIRE(keys.size() == 1007);
  REQUIRE(derive_key(1, "x") != derive_key(2, "x"));
}

TEST_CASE("the memory ledger adds up by category and forgets what was freed") {
  MemoryLedger ledger;
  ledger.add(MemoryCategory::parameters, "weights", 1000);
  ledger.add(MemoryCategory::parameters, "weights", 24);
  ledger.add(MemoryCategory::workspace, "scratch", 64);
  ledger.add_padding(16);
  REQUIRE(ledger.total() == 1088);
  REQUIRE(ledger.padding() == 16);
  REQUIRE(ledger.current()[static_cast<std::size_t>(MemoryCategory::parameters)] == 1024);
  REQUIRE(ledger.buffers().at({MemoryCategory::parameters, "weights"}) == 1024);
  ledger.remove(MemoryCategory::parameters, "weights", 1024);
  REQUIRE(ledger.buffers().size() == 1);
  REQUIRE(ledger.total() == 64);
  REQUIRE(name_of(MemoryCategory::workspace) == "workspace");
}

TEST_CASE("a part of a tensor view lies where its elements lie") {
  std::array<float, 10> values{};
  const TensorView view(values.data(), 10, DType::f32);
  const ConstTensorView part = view.part(3, 4);
  REQUIRE(part.data == values.data() + 3);
  REQUIRE(part.bytes() == 16);
  REQUIRE(static_cast<bool>(part));
  REQUIRE_FALSE(static_cast<bool>(TensorView()));
}
