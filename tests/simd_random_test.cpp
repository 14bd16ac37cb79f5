// Initial values and dropout: counter-based, so equal to the scalar definitions in core/random.h.
#include <array>

#include "simd_support.h"

using namespace zt;
using namespace zt::test;

TEST_CASE("dropout drops exactly the elements that the scalar definition drops") {
  const std::uint64_t seed = 40;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : {0, 1, 5, 31, 511, 512, 513, 2000, 70003}) {
        Dropout dropout;
        dropout.probability = std::array{0.1F, 0.5F, 0.9F}[random() % 3];
        dropout.key = random();
        dropout.first_sample = between(random, 0, 1000);
        dropout.elements_per_sample = between(random, 1, 100000);
        const std::vector<float> values = rounded(type, normals(random, size));
        require_same_everywhere([&](Setup setup) {
          Tensor tensor(type, values, setup.offset);
          setup.run(DropoutForward{.in = tensor.view(), .out = tensor.view(), .dropout = dropout});
          if (setup.threads == 1) {
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < size; ++i) {
              const float factor = dropout_factor(dropout, i);
              const float expected =
                  factor == 0.0F ? 0.0F : round_to(type, values[static_cast<std::size_t>(i)] * factor);
              wrong += tensor.get(i) == expected ? 0 : 1;
            }
            REQUIRE(wrong == 0);
          }
          return collect(tensor);
        });
      }
    }
  });
}

TEST_CASE("dropout indices beyond 2^34 reach the upper word of the counter") {
  for_instruction_sets([] {
    Dropout dropout{
        .probability = 0.5F, .key = 99, .first_sample = (std::int64_t{1} << 34) / 3, .elements_per_sample = 3};
    const std::vector<float> ones(200, 1.0F);
    const Tensor in(DType::f32, ones);
    Tensor out(DType::f32, 200);
    Setup{}.run(DropoutForward{.in = in.view(), .out = out.view(), .dropout = dropout});
    for (std::int64_t i = 0; i < 200; ++i) REQUIRE(out.get(i) == dropout_factor(dropout, i));
  });
}

TEST_CASE("dropout without probability copies, and of everything gives zeros") {
  for_instruction_sets([] {
    const Tensor in(DType::f16, {1.0F, infinite, -2.0F, not_a_number});
    Tensor out(DType::f16, 4);
    Setup{}.run(DropoutForward{.in = in.view(), .out = out.view()});
    REQUIRE(out.bytes() == in.bytes());
    const Dropout all{.probability = 1.0F, .key = 1, .first_sample = 0, .elements_per_sample = 4};
    Setup{}.run(DropoutForward{.in = in.view(), .out = out.view(), .dropout = all});
    REQUIRE(out.values() == std::vector<float>(4, 0.0F));
  });
}

TEST_CASE("a sample of the batch draws the same wherever the batch begins") {
  const std::vector<float> ones(300, 1.0F);
  const Tensor in(DType::f32, ones);
  const Dropout whole{.probability = 0.3F, .key = 5, .first_sample = 0, .elements_per_sample = 50};
  const Dropout second{.probability = 0.3F, .key = 5, .first_sample = 2, .elements_per_sample = 50};
  Tensor all(DType::f32, 300);
  Tensor later(DType::f32, 200);
  Setup{}.run(DropoutForward{.in = in.view(), .out = all.view(), .dropout = whole});
  Setup{}.run(DropoutForward{.in = in.view().part(100, 200), .out = later.view(), .dropout = second});
  for (std::int64_t i = 0; i < 200; ++i) REQUIRE(later.get(i) == all.get(100 + i));
}

TEST_CASE("initial normal values follow Box and Muller from the element's own draws") {
  Random random(41);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const std::int64_t size : {0, 1, 17, 512, 1025, 40000}) {
        const std::uint64_t key = random();
        const std::int64_t first = between(random, 0, 1000000);
        require_same_everywhere([&](Setup setup) {
          Tensor out(type, size, setup.offset);
          setup.run(Initialize{.out = out.view(),
                               .distribution = Distribution::normal,
                               .scale = 0.02F,
                               .key = key,
                               .first_element = first});
          if (setup.threads == 1) {
            for (std::int64_t i = 0; i < size; ++i) {
              const auto index = 2 * static_cast<std::uint64_t>(first + i);
              const double u1 = uniform_from_bits(random_bits(key, index));
              const double u2 = uniform_from_bits(random_bits(key, index + 1));
              const double radius = std::sqrt(-2.0 * std::log(1.0 - u1));
              const double normal = radius * std::cos(2.0 * std::acos(-1.0) * u2);
              require_close(out.get(i), 0.02 * normal, type, 3e-7, 0.02 * 3e-7 * radius);
            }
          }
          return collect(out);
        });
      }
    }
  });
}

TEST_CASE("initial values have the moments of their distributions") {
  const std::int64_t count = 400000;
  Tensor out(DType::f32, count);
  const auto moments = [&](Distribution distribution) {
    Setup{2, 0}.run(Initialize{.out = out.view(), .distribution = distribution, .scale = 2.0F, .key = 7});
    std::array<double, 4> sums{};
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = out.floats()[i];
      double power = x;
      for (double& sum : sums) {
        sum += power / static_cast<double>(count);
        power *= x;
      }
    }
    return sums;
  };
  const auto normal = moments(Distribution::normal);
  REQUIRE(std::abs(normal[0]) < 0.02);
  REQUIRE(normal[1] == Approx(4.0).epsilon(0.02));
  REQUIRE(std::abs(normal[2]) < 0.3);
  REQUIRE(normal[3] == Approx(3 * 16.0).epsilon(0.05));
  const auto uniform = moments(Distribution::uniform);
  REQUIRE(std::abs(uniform[0]) < 0.02);
  REQUIRE(uniform[1] == Approx(4.0 / 3.0).epsilon(0.02));
  REQUIRE(uniform[3] == Approx(16.0 / 5.0).epsilon(0.02));
  REQUIRE(moments(Distribution::constant)[0] == Approx(2.0));
}

TEST_CASE("initial uniform values equal the scalar formula and a slice equals the part of the whole") {
  for_instruction_sets([] {
    Tensor whole(DType::f32, 1000);
    Setup{}.run(Initialize{.out = whole.view(), .distribution = Distribution::uniform, .scale = 0.3F, .key = 8});
    for (std::int64_t i = 0; i < 1000; ++i) {
      const float u = uniform_from_bits(random_bits(8, static_cast<std::uint64_t>(i)));
      REQUIRE(whole.get(i) == (2.0F * u - 1.0F) * 0.3F);
    }
    for (const auto distribution : {Distribution::uniform, Distribution::normal}) {
      Tensor all(DType::f32, 1000);
      Tensor slice(DType::f32, 300);
      Setup{}.run(Initialize{.out = all.view(), .distribution = distribution, .scale = 0.3F, .key = 9});
      Setup{}.run(
          Initialize{.out = slice.view(), .distribution = distribution, .scale = 0.3F, .key = 9, .first_element = 333});
      for (std::int64_t i = 0; i < 300; ++i) REQUIRE(slice.get(i) == all.get(333 + i));
    }
  });
}
