#include "cuda/bits_check.h"

namespace zt::test {
namespace {

struct Formats {
  DType parameter, moment, gradient;
  bool publishes;
  DType published;
};
// Masters in fp32 with and without a copy, and 16 bits for everything in turn.
constexpr Formats some_formats[] = {
    {DType::f32, DType::f32, DType::f32, false, DType::f32}, {DType::f32, DType::f32, DType::bf16, true, DType::bf16},
    {DType::f32, DType::f32, DType::f32, true, DType::f16},  {DType::f16, DType::f32, DType::f16, true, DType::bf16},
    {DType::bf16, DType::f16, DType::f32, true, DType::f32}, {DType::f32, DType::bf16, DType::f16, false, DType::f32},
};

// Operands of a step: the tensors that it changes are compared, guards included.
struct Step {
  Step(Workbench& bench, const Formats& formats, std::int64_t count, std::int64_t offset)
      : parameter(operand(bench, random_values(count, 1), formats.parameter, offset)),
        gradient(operand(bench, random_values(count, 2, 30.0), formats.gradient, offset)),
        signed_moment(operand(bench, random_values(count, 3, 0.1), formats.moment, offset)),
        published(formats.publishes ? operand(bench, random_values(count, 4), formats.published, offset) : Operand{}) {
    std::vector<double> squares = random_values(count, 5, 0.01);
    for (double& square : squares) square = std::abs(square);
    moment = operand(bench, squares, formats.moment, offset);
    std::reverse(squares.begin(), squares.end());
    largest = operand(bench, squares, formats.moment, offset);
  }
  std::vector<TensorView> results() const {
    std::vector<TensorView> all = {parameter.whole, gradient.whole, signed_moment.whole, moment.whole, largest.whole};
    if (published.view) all.push_back(published.whole);
    return all;
  }
  Operand parameter, gradient, signed_moment, published, moment, largest;
};

// run(bench, step): on tensors of several formats, sizes and alignments.
template <typename Run>
void check_steps(const Run& run) {
  for (const Formats& formats : some_formats) {
    for (const std::int64_t count : {0, 1, 7, 1024 + 13}) {
      for (const std::int64_t offset : {0, 1}) {
        INFO("parameter " << name_of(formats.parameter) << ", moment " << name_of(formats.moment) << ", gradient "
                          << name_of(formats.gradient) << ", " << count << " elements, offset " << offset);
        check_same_bits([&](Workbench& bench) {
          const Step step(bench, formats, count, offset);
          run(bench, step);
          return step.results();
        });
      }
    }
  }
}

AdamUpdate adam(const Step& step) {
  return {.parameter = step.parameter.view,
          .first_moment = step.signed_moment.view,
          .second_moment = step.moment.view,
          .gradient = step.gradient.view,
          .published = step.published.view,
          .factor = 1.0F / 3.0F,
          .learning_rate = 1e-3F,
          .step_size = 1.234e-3F,
          .bias_correction2_sqrt = 0.9F,
          .weight_decay = 0.1F};
}

}  // namespace

TEST_CASE("steps of AdamW on a GPU are the CPU's to the bit") {
  check_steps([](Workbench& bench, const Step& step) { bench.run(adam(step)); });
}

TEST_CASE("steps of Adam with coupled decay on a GPU are the CPU's to the bit") {
  check_steps([](Workbench& bench, const Step& step) {
    AdamUpdate op = adam(step);
    op.decoupled = false;
    bench.run(op);
  });
}

TEST_CASE("steps of AMSGrad without decay on a GPU are the CPU's to the bit") {
  for (const bool decoupled : {false, true}) {
    check_steps([&](Workbench& bench, const Step& step) {
      AdamUpdate op = adam(step);
      op.weight_decay = 0.0F;
      op.decoupled = decoupled;
      op.largest_second_moment = step.largest.view;
      bench.run(op);
    });
  }
}

TEST_CASE("steps of SGD on a GPU are the CPU's to the bit") {
  for (const float decay : {0.0F, 0.01F}) {
    check_steps([&](Workbench& bench, const Step& step) {
      bench.run(SgdUpdate{.parameter = step.parameter.view,
                          .gradient = step.gradient.view,
                          .published = step.published.view,
                          .factor = 0.3F,
                          .learning_rate = 0.1F,
                          .weight_decay = decay});
    });
  }
}

TEST_CASE("steps of SGD with momentum on a GPU are the CPU's to the bit") {
  for (const bool nesterov : {false, true}) {
    for (const bool first_step : {false, true}) {
      check_steps([&](Workbench& bench, const Step& step) {
        bench.run(SgdUpdate{.parameter = step.parameter.view,
                            .momentum_buffer = step.signed_moment.view,
                            .gradient = step.gradient.view,
                            .published = step.published.view,
                            .factor = 0.3F,
                            .learning_rate = 0.1F,
                            .momentum = 0.9F,
                            .dampening = nesterov ? 0.0F : 0.1F,
                            .weight_decay = 0.01F,
                            .nesterov = nesterov,
                            .first_step = first_step});
      });
    }
  }
}

TEST_CASE("steps of Adagrad on a GPU are the CPU's to the bit") {
  for (const float decay : {0.0F, 0.01F}) {
    check_steps([&](Workbench& bench, const Step& step) {
      bench.run(AdagradUpdate{.parameter = step.parameter.view,
                              .sum_of_squares = step.moment.view,
                              .gradient = step.gradient.view,
                              .published = step.published.view,
                              .factor = 0.3F,
                              .learning_rate = 0.1F,
                              .weight_decay = decay});
    });
  }
}

TEST_CASE("steps of Lion on a GPU are the CPU's to the bit") {
  for (const float decay : {0.0F, 0.01F}) {
    check_steps([&](Workbench& bench, const Step& step) {
      bench.run(LionUpdate{.parameter = step.parameter.view,
                           .momentum = step.signed_moment.view,
                           .gradient = step.gradient.view,
                           .published = step.published.view,
                           .factor = 0.3F,
                           .learning_rate = 0.1F,
                           .weight_decay = decay});
    });
  }
}

TEST_CASE("steps of LAMB on a GPU are the CPU's to the bit, from the moments over the norms to the weights") {
  for (const bool inside : {false, true}) {
    check_steps([&](Workbench& bench, const Step& step) {
      const LambDirection rule{.bias_correction1 = 0.3F,
                               .bias_correction2 = 0.02F,
                               .epsilon = 1e-3F,
                               .weight_decay = inside ? 0.0F : 0.1F,
                               .epsilon_inside_root = inside};
      const std::int64_t count = step.parameter.view.count;
      const TensorView direction = bench.tensor(std::vector<double>(static_cast<std::size_t>(count)), DType::f32);
      bench.run(LambMoments{.parameter = step.parameter.view,
                            .first_moment = step.signed_moment.view,
                            .second_moment = step.moment.view,
                            .direction = direction,
                            .gradient = step.gradient.view,
                            .rule = rule,
                            .factor = 0.3F});
      auto* squares =
          reinterpret_cast<Accumulator*>(bench.integers(std::vector<std::int64_t>(2 * sizeof(Accumulator) / 8)));
      bench.run(SumSquares{.in = step.parameter.view, .out = squares});
      bench.run(SumSquares{.in = direction, .out = squares + 1});
      const TensorView ratio = bench.tensor({-1.0}, DType::f32);
      bench.run(TrustRatios{
          .squares = squares, .out = ratio.as<float>(), .count = 1, .least = 0.01, .most = inside ? 1e-2 : 10.0});
      bench.run(LambUpdate{.parameter = step.parameter.view,
                           .first_moment = step.signed_moment.view,
                           .second_moment = step.moment.view,
                           .published = step.published.view,
                           .rule = rule,
                           .learning_rate = 0.1F,
                           .trust_ratio = ratio.as<float>()});
    });
  }
}

TEST_CASE("trust ratios of many tensors on a GPU are the CPU's") {
  const BothResults both = on_both([](Workbench& bench) {
    constexpr std::size_t tensors = 67;
    auto* squares = reinterpret_cast<Accumulator*>(
        bench.integers(std::vector<std::int64_t>(2 * tensors * sizeof(Accumulator) / 8)));
    for (std::size_t i = 0; i < 2 * tensors; ++i) {
      if (i == 12 || i == 21) continue;  // norms of 0
      const TensorView values =
          bench.tensor(random_values(5, i, std::pow(1.3, static_cast<double>(i % 31))), DType::f32);
      bench.run(SumSquares{.in = values, .out = squares + i});
    }
    const TensorView ratios = bench.tensor(std::vector<double>(tensors, -1.0), DType::f32);
    bench.run(TrustRatios{.squares = squares,
                          .out = ratios.as<float>(),
                          .count = static_cast<std::int64_t>(tensors),
                          .least = 0.01,
                          .most = 10.0});
    return bench.read(ratios);
  });
  check_equal(both.gpu, both.cpu);
  CHECK(both.gpu[6] == 1.0);
  CHECK(both.gpu[10] == 1.0);
}

}  // namespace zt::test
