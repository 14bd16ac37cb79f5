// Conversions between dtypes, and fills.
#include <algorithm>

#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

// Floats around every boundary of the 16-bit formats, and random bit patterns.
std::vector<float> difficult_floats(Random& random) {
  std::vector<float> values;
  const auto add_around = [&](std::uint32_t bits) {
    for (std::uint32_t step = 0; step < 5; ++step) {
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        values.push_back(std::bit_cast<float>((bits - 2 + step) ^ sign));
      }
    }
  };
  for (const float value :
       {0.0F, 1.0F, 65504.0F, 65519.0F, 65520.0F, 65536.0F, 0x1p-14F, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1p-26F,
        0x1p-126F, 0x1p-133F, 0x1p-134F, 0x1p-149F, 3.40282347e38F, 3.3895314e38F}) {
    add_around(std::bit_cast<std::uint32_t>(value) + 2);
    add_around(std::bit_cast<std::uint32_t>(value));
  }
  for (const std::uint32_t bits : {0x7f800000U, 0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0x7f808000U, 0x7fa00000U}) {
    add_around(bits);
  }
  // Halfway cases of both formats at every exponent.
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const std::uint32_t tail : {0x1000U, 0x3000U, 0x8000U, 0x18000U, 0x7000U, 0x7fffffU}) {
      add_around((exponent << 23) + tail);
    }
  }
  for (int i = 0; i < 100000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

template <typename T>
void check_widening(DType type) {
  Tensor in(type, 65536, 1);
  T* data = in.view().as<T>();
  for (std::uint32_t i = 0; i < 65536; ++i) data[i].bits = static_cast<std::uint16_t>(i);
  Tensor out(DType::f32, 65536, 3);
  Setup{2, 0}.run(Cast{.in = in.view(), .out = out.view()});
  std::int64_t wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const float expected = to_float(T{static_cast<std::uint16_t>(i)});
    const float got = out.floats()[i];
    // A signalling NaN may become quiet, as processors do it.
    const std::uint32_t quiet = std::isnan(expected) ? 0x00400000U : 0U;
    wrong += (std::bit_cast<std::uint32_t>(got) | quiet) == (std::bit_cast<std::uint32_t>(expected) | quiet) ? 0 : 1;
  }
  REQUIRE(wrong == 0);
}

template <typename T>
void check_narrowing(DType type, const std::vector<float>& values) {
  Tensor in(DType::f32, static_cast<std::int64_t>(values.size()), 1);
  std::copy(values.begin(), values.end(), in.floats());
  Tensor out(type, in.count(), 1);
  Setup{2, 0}.run(Cast{.in = in.view(), .out = out.view()});
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    wrong += out.view().as<T>()[i].bits == from_float<T>(values[i]).bits ? 0 : 1;
  }
  REQUIRE(wrong == 0);
}

}  // namespace

TEST_CASE("every 16-bit pattern widens to the float that the scalar conversion gives") {
  for_instruction_sets([] {
    check_widening<bf16_t>(DType::bf16);
    check_widening<f16_t>(DType::f16);
  });
}

TEST_CASE("floats are narrowed as the scalar conversion does, to the bit") {
  Random random(1);
  const std::vector<float> values = difficult_floats(random);
  for_instruction_sets([&] {
    check_narrowing<bf16_t>(DType::bf16, values);
    check_narrowing<f16_t>(DType::f16, values);
  });
}

TEST_CASE("casts between all dtypes round once, for every size and alignment") {
  Random random(2);
  for_instruction_sets([&] {
    for (const DType from : all_dtypes) {
      for (const DType to : all_dtypes) {
        for (const std::int64_t size : some_sizes) {
          const std::vector<float> values = rounded(from, normals(random, size, 100.0F));
          require_same_everywhere([&](Setup setup) {
            const Tensor in(from, values, setup.offset);
            Tensor out(to, size, setup.offset);
            setup.run(Cast{.in = in.view(), .out = out.view()});
            REQUIRE(out.values() == rounded(to, values));
            return collect(out);
          });
        }
      }
    }
  });
}

TEST_CASE("a cast between equal dtypes may be in place and keeps all bits") {
  Tensor tensor(DType::f16, {1.0F, not_a_number, -infinite, 65504.0F, 1e-7F});
  const Bytes before = tensor.bytes();
  Setup{}.run(Cast{.in = tensor.view(), .out = tensor.view()});
  REQUIRE(tensor.bytes() == before);
}

TEST_CASE("a large cast is cut into tasks without seams") {
  Random random(3);
  const std::vector<float> values = normals(random, 200001);
  require_same_everywhere([&](Setup setup) {
    const Tensor in(DType::f32, values, setup.offset);
    Tensor out(DType::bf16, in.count(), setup.offset);
    setup.run(Cast{.in = in.view(), .out = out.view()});
    REQUIRE(out.values() == rounded(DType::bf16, values));
    return collect(out);
  });
}

TEST_CASE("fill writes the rounded value everywhere and nowhere else") {
  for_instruction_sets([] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : some_sizes) {
        for (const float value : {0.0F, -0.0F, 1.0F / 3.0F, 1e6F, infinite, not_a_number}) {
          Tensor out(type, size, 3);
          Setup{2, 0}.run(Fill{.out = out.view(), .value = value});
          REQUIRE(out.bytes() == Tensor(type, std::vector<float>(static_cast<std::size_t>(size), value)).bytes());
          REQUIRE(out.intact());
        }
      }
    }
  });
}

TEST_CASE("an instruction set above the processor's is refused") {
  if (cpu::best_instruction_set() < cpu::InstructionSet::avx512) {
    REQUIRE_THROWS(cpu::use_instruction_set(cpu::InstructionSet::avx512));
  }
  REQUIRE(cpu::instruction_set() == cpu::best_instruction_set());
}
