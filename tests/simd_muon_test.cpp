// Muon's operations against a plain transcription of their comments in operations.h, to the bit.
#include <bit>
#include <utility>

#include "core/exact_sum.h"
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

const std::vector<std::int64_t> sizes = {0, 1, 16, 50, 333, 40001};

// Bits, so that zeros of either sign differ.
void require_equal(const Tensor& got, const Tensor& expected) {
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    if (std::bit_cast<std::uint32_t>(got.get(i)) != std::bit_cast<std::uint32_t>(expected.get(i))) {
      INFO("element " << i << " of " << expected.count() << ": " << got.get(i) << ", expected " << expected.get(i));
      REQUIRE(got.get(i) == expected.get(i));
    }
  }
  REQUIRE(got.bytes() == expected.bytes());
}

// One operation's rounding at a time.
void require_plain_direction(Random& random, DType momentum_type, DType gradient_type, std::int64_t size, float beta,
                             bool nesterov, const UpdateDecision* decision = nullptr) {
  const std::vector<float> m = rounded(momentum_type, normals(random, size, 0.1F));
  const std::vector<float> g = rounded(gradient_type, normals(random, size, 10.0F));
  const auto weight = static_cast<float>(1.0 - static_cast<double>(beta));
  const float factor = decision == nullptr ? 0.37F : decision->factor;
  Tensor expected_momentum(momentum_type, size), expected_direction(DType::f32, size);
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float scaled = g[at] * factor;
    const float to_gradient = scaled - m[at];
    const float change = to_gradient * weight;
    const float mean = m[at] + change;
    const float from_gradient = mean - scaled;
    const float back = from_gradient * weight;
    expected_momentum.set(i, mean);
    expected_direction.set(i, nesterov ? mean - back : mean);
  }
  require_same_everywhere([&](Setup setup) {
    Tensor momentum(momentum_type, m, setup.offset), direction(DType::f32, size, setup.offset);
    const Tensor gradient(gradient_type, g, setup.offset);
    setup.run(MuonDirection{.momentum = momentum.view(),
                            .direction = direction.view(),
                            .gradient = gradient.view(),
                            .factor = decision == nullptr ? factor : 1000.0F,
                            .one_minus_beta = weight,
                            .nesterov = nesterov,
                            .decision = decision});
    require_equal(momentum, expected_momentum);
    require_equal(direction, expected_direction);
    return collect(momentum, direction, gradient);
  });
}

// with_copy: whether there is a published one.
void require_plain_update(Random& random, DType parameter_type, DType published_type, bool with_copy, std::int64_t size,
                          const UpdateDecision* decision = nullptr) {
  const std::vector<float> p = rounded(parameter_type, normals(random, size));
  const std::vector<float> u = normals(random, size, 0.3F);
  MuonUpdate op;
  op.learning_rate = 0.03F;
  op.scale = random() % 3 == 0 ? 1.0F : 0.2F * std::sqrt(768.0F);
  op.weight_decay = random() % 3 == 0 ? 0.0F : 0.1F;
  op.decision = decision;
  Tensor expected(parameter_type, size), expected_copy(published_type, size);
  for (std::int64_t i = 0; i < size; ++i) {
    const float decay = op.learning_rate * op.weight_decay;
    const float kept = p[static_cast<std::size_t>(i)] * (1.0F - decay);
    const float scaled = op.scale * u[static_cast<std::size_t>(i)];
    const float step = op.learning_rate * scaled;
    expected.set(i, kept - step);
    expected_copy.set(i, expected.get(i));  // from the parameter as it is stored
  }
  require_same_everywhere([&](Setup setup) {
    Tensor parameter(parameter_type, p, setup.offset), published(published_type, size, setup.offset);
    const Tensor direction(DType::f32, u, setup.offset);
    const Bytes untouched = published.bytes();
    op.parameter = parameter.view();
    op.published = with_copy ? published.view() : TensorView{};
    op.direction = direction.view();
    setup.run(op);
    require_equal(parameter, expected);
    if (with_copy) {
      require_equal(published, expected_copy);
    } else {
      REQUIRE(published.bytes() == untouched);
    }
    return collect(parameter, published, direction);
  });
}

Accumulator squares_of(ConstTensorView values) {
  Accumulator squares;
  Setup{}.run(SumSquares{.in = values, .out = &squares});
  return squares;
}

}  // namespace

TEST_CASE("Muon's momentum and direction equal their definition to the bit in every combination of dtypes") {
  Random random(36);
  for_instruction_sets([&] {
    for (const bool nesterov : {false, true}) {
      for (const DType momentum : all_dtypes) {
        for (const DType gradient : all_dtypes) {
          require_plain_direction(random, momentum, gradient, 531, 0.95F, nesterov);
        }
      }
      for (const std::int64_t size : sizes) {
        require_plain_direction(random, DType::f32, DType::bf16, size, 0.5F, nesterov);
        require_plain_direction(random, DType::bf16, DType::f32, size, 0.9F, nesterov);
      }
    }
  });
}

TEST_CASE("Muon's direction looks ahead of the momentum with nesterov, else it is the momentum") {
  for (const bool nesterov : {false, true}) {
    const Tensor gradient(DType::f32, {8.0F, -2.0F, 0.0F});
    Tensor momentum(DType::f32, {4.0F, 2.0F, 0.0F});
    Tensor direction(DType::f32, {0.0F, 0.0F, 1.0F});
    Setup{}.run(MuonDirection{.momentum = momentum.view(),
                              .direction = direction.view(),
                              .gradient = gradient.view(),
                              .factor = 0.5F,
                              .one_minus_beta = 0.25F,
                              .nesterov = nesterov});
    // 3/4 of the momentum and 1/4 of the gradient, halved; and so once more.
    REQUIRE(momentum.values() == std::vector<float>{4.0F, 1.25F, 0.0F});
    REQUIRE(direction.values() == (nesterov ? std::vector<float>{4.0F, 0.6875F, 0.0F} : momentum.values()));
  }
}

TEST_CASE("Muon's direction is taken from the momentum before that is rounded") {
  const Tensor gradient(DType::f32, std::vector<float>{1.0F + 0x1p-7F});
  Tensor momentum(DType::bf16, std::vector<float>{1.0F});
  Tensor direction(DType::f32, 1);
  Setup{}.run(MuonDirection{.momentum = momentum.view(),
                            .direction = direction.view(),
                            .gradient = gradient.view(),
                            .one_minus_beta = 0.25F,
                            .nesterov = false});
  REQUIRE(direction.get(0) == 1.0F + 0x1p-9F);
  REQUIRE(momentum.get(0) == 1.0F);
}

TEST_CASE("Muon's steps equal their definition to the bit in every combination of dtypes") {
  Random random(37);
  for_instruction_sets([&] {
    for (const DType parameter : all_dtypes) {
      for (const DType published : all_dtypes) {
        require_plain_update(random, parameter, published, true, 531);
        require_plain_update(random, parameter, published, false, 50);
      }
    }
    for (const std::int64_t size : sizes) {
      require_plain_update(random, DType::f32, DType::bf16, true, size);
      require_plain_update(random, DType::f16, DType::f32, true, size);
    }
  });
}

TEST_CASE("Muon follows what the device has decided: its factor for the gradient alone, and whether to apply at all") {
  Random random(38);
  const UpdateDecision applied{.factor = 0.043F, .apply = 1};
  for (const DType type : all_dtypes) {
    require_plain_direction(random, type, DType::bf16, 333, 0.95F, true, &applied);
    require_plain_update(random, type, DType::bf16, true, 333, &applied);
  }
  const UpdateDecision refused{.factor = 0.043F, .apply = 0};
  for (const DType type : all_dtypes) {
    const Tensor gradient(DType::f32, normals(random, 333));
    Tensor momentum(type, normals(random, 333)), direction(DType::f32, normals(random, 333));
    Tensor parameter(type, normals(random, 333)), published(DType::bf16, normals(random, 333));
    const Bytes before = collect(momentum, direction, parameter, published);
    Setup{}.run(MuonDirection{
        .momentum = momentum.view(), .direction = direction.view(), .gradient = gradient.view(), .decision = &refused});
    Setup{}.run(MuonUpdate{.parameter = parameter.view(),
                           .published = published.view(),
                           .direction = direction.view(),
                           .learning_rate = 0.1F,
                           .decision = &refused});
    REQUIRE(collect(momentum, direction, parameter, published) == before);
  }
}

TEST_CASE("division by a norm equals its definition to the bit") {
  Random random(39);
  for_instruction_sets([&] {
    for (const std::int64_t size : sizes) {
      for (const float epsilon : {0.0F, 1e-7F, 0.3F}) {
        const std::vector<float> initial = normals(random, size, 3.0F);
        const Accumulator squares = squares_of(Tensor(DType::f32, initial).view());
        const auto norm = static_cast<float>(std::sqrt(exact_sum_value(squares.limbs)));
        const float divisor = norm + epsilon;
        Tensor expected(DType::f32, size);
        for (std::int64_t i = 0; i < size; ++i) expected.set(i, initial[static_cast<std::size_t>(i)] / divisor);
        require_same_everywhere([&](Setup setup) {
          Tensor values(DType::f32, initial, setup.offset);
          setup.run(DivideByNorm{.values = values.view(), .squares = &squares, .epsilon = epsilon});
          require_equal(values, expected);
          return collect(values);
        });
      }
    }
  });
}

TEST_CASE("division by a norm makes the norm 1, and leaves zeros what they are") {
  Tensor values(DType::f32, {3.0F, 0.0F, -4.0F});
  const Accumulator squares = squares_of(values.view());
  Setup{}.run(DivideByNorm{.values = values.view(), .squares = &squares});
  REQUIRE(values.values() == std::vector<float>{0.6F, 0.0F, -0.8F});  // 5 + 1e-7 is 5 in fp32
  Tensor zeros(DType::f32, {0.0F, 0.0F});
  const Accumulator none;
  Setup{}.run(DivideByNorm{.values = zeros.view(), .squares = &none});
  REQUIRE(zeros.values() == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("combinations of two matrices equal their definition to the bit, in place, too") {
  Random random(40);
  for_instruction_sets([&] {
    for (const std::int64_t size : sizes) {
      const std::vector<float> first = normals(random, size), second = normals(random, size, 5.0F);
      for (const auto& [alpha, beta] :
           {std::pair{-4.7750F, 2.0315F}, std::pair{1.0F, 3.4445F}, std::pair{1.0F, -1.0F}}) {
        Tensor expected(DType::f32, size), doubled(DType::f32, size);
        for (std::int64_t i = 0; i < size; ++i) {
          const float x = first[static_cast<std::size_t>(i)], y = second[static_cast<std::size_t>(i)];
          const float of_first = alpha * x, of_second = beta * y, again = beta * x;
          expected.set(i, of_first + of_second);
          doubled.set(i, of_first + again);
        }
        const Combine rule{.alpha = alpha, .beta = beta};
        require_same_everywhere([&](Setup setup) {
          const auto run = [&](const Tensor& a, const Tensor& b, Tensor& out) {
            Combine op = rule;
            op.a = a.view();
            op.b = b.view();
            op.out = out.view();
            setup.run(op);
          };
          Tensor a(DType::f32, first, setup.offset), b(DType::f32, second, setup.offset);
          Tensor out(DType::f32, size, setup.offset);
          run(a, b, out);
          require_equal(out, expected);
          REQUIRE((a.values() == first && b.values() == second));
          run(a, a, out);
          require_equal(out, doubled);
          Tensor onto_a = a, onto_b = b;
          run(onto_a, b, onto_a);
          require_equal(onto_a, expected);
          run(a, onto_b, onto_b);
          require_equal(onto_b, expected);
          run(a, a, a);
          require_equal(a, doubled);
          return collect(a, b, out, onto_a, onto_b);
        });
      }
    }
  });
}
