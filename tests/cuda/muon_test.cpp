#include "cuda/bits_check.h"

namespace zt::test {
namespace {

// Calls check(dtype, dtype, count, offset) for formats of two tensors, sizes and alignments.
template <typename Check>
void for_tensors(const Check& check) {
  for (const DType first : all_dtypes) {
    for (const DType second : all_dtypes) {
      for (const std::int64_t count : {0, 1, 7, 1024 + 13}) {
        for (const std::int64_t offset : {0, 1}) {
          INFO(name_of(first) << " and " << name_of(second) << ", " << count << " elements, offset " << offset);
          check(first, second, count, offset);
        }
      }
    }
  }
}

UpdateDecision* decided(Workbench& bench, const UpdateDecision& decision) {
  std::vector<std::int32_t> words(sizeof decision / 4);
  std::memcpy(words.data(), &decision, sizeof decision);
  return reinterpret_cast<UpdateDecision*>(bench.integers(words));
}

Accumulator* accumulators(Workbench& bench) {
  return reinterpret_cast<Accumulator*>(bench.integers(std::vector<std::int64_t>(sizeof(Accumulator) / 8)));
}

// A direction, and the step in it, by a decision of the device.
std::vector<double> decided_step(Workbench& bench, const UpdateDecision& decision) {
  const auto* const device_decision = decided(bench, decision);
  const TensorView momentum = bench.tensor(random_values(301, 1), DType::f32);
  const TensorView direction = bench.tensor(random_values(301, 2), DType::f32);
  const TensorView parameter = bench.tensor(random_values(301, 3), DType::f32);
  const TensorView published = bench.tensor(random_values(301, 4), DType::bf16);
  bench.run(MuonDirection{.momentum = momentum,
                          .direction = direction,
                          .gradient = bench.tensor(random_values(301, 5, 10.0), DType::f16),
                          .factor = 1000.0F,
                          .decision = device_decision});
  bench.run(MuonUpdate{.parameter = parameter,
                       .published = published,
                       .direction = direction,
                       .learning_rate = 0.1F,
                       .scale = 0.7F,
                       .weight_decay = 0.1F,
                       .decision = device_decision});
  std::vector<double> all;
  for (const TensorView& view : {momentum, direction, parameter, published}) {
    const std::vector<double> values = bench.read(view);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("momentum and direction of Muon on a GPU are the CPU's to the bit") {
  for (const bool nesterov : {false, true}) {
    for_tensors([&](DType momentum_type, DType gradient_type, std::int64_t count, std::int64_t offset) {
      check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
        const Operand momentum = operand(bench, random_values(count, 1), momentum_type, offset);
        const Operand direction = operand(bench, random_values(count, 2), DType::f32, offset);
        const Operand gradient = operand(bench, random_values(count, 3, 30.0), gradient_type, offset);
        bench.run(MuonDirection{.momentum = momentum.view,
                                .direction = direction.view,
                                .gradient = gradient.view,
                                .factor = 1.0F / 3.0F,
                                .one_minus_beta = 0.05F,
                                .nesterov = nesterov});
        return {momentum.whole, direction.whole, gradient.whole};
      });
    });
  }
}

TEST_CASE("steps of Muon on a GPU are the CPU's to the bit") {
  for (const bool publishes : {false, true}) {
    for_tensors([&](DType parameter_type, DType published_type, std::int64_t count, std::int64_t offset) {
      check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
        const Operand parameter = operand(bench, random_values(count, 1), parameter_type, offset);
        const Operand published = operand(bench, random_values(count, 2), published_type, offset);
        const Operand direction = operand(bench, random_values(count, 3), DType::f32, offset);
        bench.run(MuonUpdate{.parameter = parameter.view,
                             .published = publishes ? published.view : TensorView{},
                             .direction = direction.view,
                             .learning_rate = 0.02F,
                             .scale = 1.0F / 3.0F,
                             .weight_decay = publishes ? 0.1F : 0.0F});
        return {parameter.whole, published.whole, direction.whole};
      });
    });
  }
}

TEST_CASE("Muon on a GPU follows a decision as on the CPU: its factor for the gradient alone, and whether to apply") {
  const auto by = [](UpdateDecision decision) {
    return on_both([&](Workbench& bench) { return decided_step(bench, decision); });
  };
  const BothResults applied = by({.factor = 0.3F, .apply = 1});
  check_equal(applied.gpu, applied.cpu);
  const BothResults refused = by({.factor = 0.3F, .apply = 0});
  check_equal(refused.gpu, refused.cpu);
  CHECK(refused.gpu != applied.gpu);
  std::vector<double> untouched;
  for (std::uint64_t key = 1; key <= 4; ++key) {
    const std::vector<double> values = random_values(301, key);
    untouched.insert(untouched.end(), values.begin(), values.end());
  }
  check_close(refused.gpu, untouched, 0x1p-8, 0.0);
}

TEST_CASE("division by a norm on a GPU is the CPU's to the bit, over several blocks, too") {
  for (const double scale : {1e-12, 1.0, 1e12}) {
    for (const std::int64_t count : {0, 1, 7, 4096, 2 * 4096 + 13}) {
      for (const std::int64_t offset : {0, 1}) {
        INFO(count << " elements up to " << scale << ", offset " << offset);
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          const Operand values = operand(bench, random_values(count, 1, scale), DType::f32, offset);
          Accumulator* const squares = accumulators(bench);
          bench.run(SumSquares{.in = values.view, .out = squares});
          bench.run(DivideByNorm{.values = values.view, .squares = squares, .epsilon = 1e-7F});
          return {values.whole};
        });
      }
    }
  }
}

TEST_CASE("a tensor of zeros stays one when a GPU divides it by its norm") {
  const BothResults both = on_both([](Workbench& bench) {
    const TensorView values = bench.tensor(std::vector<double>(300), DType::f32);
    bench.run(DivideByNorm{.values = values, .squares = accumulators(bench)});
    return bench.read(values);
  });
  check_equal(both.gpu, std::vector<double>(300));
  check_equal(both.cpu, both.gpu);
}

TEST_CASE("combinations of two matrices on a GPU are the CPU's to the bit, in place, too") {
  for (const std::int64_t count : {0, 1, 7, 2048, 3 * 2048 + 13}) {
    for (const std::int64_t offset : {0, 1}) {
      for (const int place : {0, 1, 2}) {
        INFO(count << " elements, offset " << offset << ", into operand " << place);
        check_same_bits([&](Workbench& bench) -> std::vector<TensorView> {
          const Operand operands[] = {operand(bench, random_values(count, 1), DType::f32, offset),
                                      operand(bench, random_values(count, 2), DType::f32, offset),
                                      operand(bench, random_values(count, 3), DType::f32, offset)};
          bench.run(Combine{.a = operands[0].view,
                            .b = operands[1].view,
                            .out = operands[place].view,
                            .alpha = -4.775F,
                            .beta = 2.0315F});
          return {operands[0].whole, operands[1].whole, operands[2].whole};
        });
      }
    }
  }
}

}  // namespace zt::test
