#include "cuda/bits_check.h"

namespace zt::test {
namespace {

// Gradients (and one loss) are summed, the device decides, and Adam follows its decision: the bits of everything.
std::vector<double> decided_step(Workbench& bench, const std::vector<double>& gradients, double loss, double clip,
                                 std::int32_t apply) {
  const TensorView gradient = bench.tensor(gradients, DType::f32);
  const TensorView losses = bench.tensor({loss}, DType::f32);
  auto* sums = reinterpret_cast<Accumulator*>(bench.integers(std::vector<std::int64_t>(2 * sizeof(Accumulator) / 8)));
  const UpdateDecision initial{.factor = -1.0F, .apply = apply};
  std::vector<std::int32_t> words(2);
  std::memcpy(words.data(), &initial, sizeof initial);
  auto* decision = reinterpret_cast<UpdateDecision*>(bench.integers(words));
  bench.run(SumValues{.in = static_cast<const float*>(losses.data), .count = 1, .out = sums});
  bench.run(SumSquares{.in = gradient, .out = sums + 1});
  bench.run(DecideUpdate{.sums = sums, .unscale = 0.25, .clip = clip, .out = decision});
  const auto count = static_cast<std::int64_t>(gradients.size());
  const TensorView parameter = bench.tensor(random_values(count, 7), DType::f32);
  const TensorView first = bench.tensor(random_values(count, 8), DType::f32);
  const TensorView second = bench.tensor(std::vector<double>(gradients.size(), 0.5), DType::f32);
  bench.run(AdamUpdate{.parameter = parameter,
                       .first_moment = first,
                       .second_moment = second,
                       .gradient = gradient,
                       .learning_rate = 0.1F,
                       .step_size = 0.1F,
                       .decision = decision});
  std::vector<double> all = bench.read(parameter);
  for (const TensorView& moment : {first, second}) {
    const std::vector<double> values = bench.read(moment);
    all.insert(all.end(), values.begin(), values.end());
  }
  const auto left = bench.read_integers(reinterpret_cast<const std::int32_t*>(decision), 2);
  all.insert(all.end(), left.begin(), left.end());
  return all;
}

}  // namespace

TEST_CASE("the device decides on an update as the CPU does: the same factor, and the same weights after it") {
  for (const double clip : {0.0, 1.0, 1e9}) {
    for (const double scale : {1e-20, 1.0, 1e15}) {
      INFO("clip " << clip << ", gradients up to " << scale);
      const BothResults both =
          on_both([&](Workbench& bench) { return decided_step(bench, random_values(301, 3, scale), 2.5, clip, 1); });
      check_equal(both.gpu, both.cpu);
      CHECK(both.gpu.back() == 1);
    }
  }
}

TEST_CASE("a step that is not finite, and every one after it, leaves weights and moments as they are") {
  const std::vector<double> untouched =
      on_both([](Workbench& bench) { return decided_step(bench, random_values(40, 3), 2.5, 1.0, 0); }).gpu;
  CHECK(untouched.back() == 0);
  const std::vector<double> weights = random_values(40, 7);
  check_close({untouched.begin(), untouched.begin() + 40}, weights, 1e-7, 0.0);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    std::vector<double> gradients = random_values(40, 3);
    gradients[17] = bad;
    for (const BothResults& both :
         {on_both([&](Workbench& bench) { return decided_step(bench, gradients, 2.5, 1.0, 1); }),
          on_both([&](Workbench& bench) { return decided_step(bench, random_values(40, 3), bad, 1.0, 1); })}) {
      CHECK(both.gpu.back() == 0);
      CHECK(both.cpu.back() == 0);
      check_equal({both.gpu.begin(), both.gpu.begin() + 120}, {untouched.begin(), untouched.begin() + 120});
      check_equal({both.cpu.begin(), both.cpu.begin() + 120}, {untouched.begin(), untouched.begin() + 120});
    }
  }
}

}  // namespace zt::test
