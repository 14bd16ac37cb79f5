// Cross entropy and its gradient on a GPU against the CPU's.
#include <limits>

#include "cuda/row_cases.h"

namespace zt::test {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct Case {
  DType type = DType::f32;
  std::int64_t vocabulary = 0, stride = 0;
  std::vector<double> logits{};  // [rows, stride]
  std::vector<std::int32_t> targets{};
  bool in_place = true, gradient = true;
  std::int64_t offset = 0;  // of logits and gradient, in elements
};

struct Results {
  std::vector<double> losses, d_logits;
  std::vector<std::int32_t> correct;
};

Results cross_entropy(Workbench& bench, const Case& one) {
  const auto rows = static_cast<std::int64_t>(one.targets.size());
  const TensorView logits = shifted(bench, one.logits, one.type, one.offset);
  CrossEntropy op;
  op.logits = logits;
  op.targets = bench.integers(one.targets);
  op.losses = bench.floats(rows);
  if (one.gradient) {
    op.d_logits = one.in_place ? logits : shifted_output(bench, rows * one.stride, one.type, one.offset);
  }
  op.correct = bench.integers(std::vector<std::int32_t>(one.targets.size(), -7));
  op.rows = rows;
  op.vocabulary = one.vocabulary;
  op.stride = one.stride;
  op.scale = 0.37F;
  bench.run(op);
  return {bench.read({op.losses, rows, DType::f32}), bench.read(op.d_logits), bench.read_integers(op.correct, rows)};
}

// Logits like a trained model's, NaN in the padding, every fourth row without a target.
Case random_case(DType type, std::int64_t rows, std::int64_t vocabulary, std::int64_t stride, double scale = 6.0) {
  Case one{.type = type, .vocabulary = vocabulary, .stride = stride};
  one.logits = random_values(rows * stride, 11, scale);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = vocabulary; c < stride; ++c) one.logits[static_cast<std::size_t>(row * stride + c)] = NAN;
    const auto target = random_bits(5, static_cast<std::uint64_t>(row)) % static_cast<std::uint32_t>(vocabulary);
    one.targets.push_back(row % 4 == 3 ? -1 : static_cast<std::int32_t>(target));
  }
  return one;
}

void check(const Case& one) {
  INFO(one.targets.size() << " rows of " << one.vocabulary << " of " << one.stride << " " << name_of(one.type));
  const auto [gpu, cpu] = each_device<Results>([&](Workbench& bench) { return cross_entropy(bench, one); });
  check_close(gpu.losses, cpu.losses, 1e-6, 0.0);
  CHECK(gpu.correct == cpu.correct);
  // The sum's error of a few units in the last place of fp32, and a rounding on each side; half the distance of
  // fp16's smallest numbers.
  check_close(gpu.d_logits, cpu.d_logits, 2.0 * unit_roundoff(one.type) + 2e-6,
              one.type == DType::f16 ? 0x1p-24 : 0x1p-126);
}

}  // namespace

TEST_CASE("a GPU computes the cross entropy and its gradient for vocabularies of any size") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check(random_case(type, 0, 5, 8));
    check(random_case(type, 5, 1, 1));
    check(random_case(type, 5, 2, 2));
    check(random_case(type, 6, 2, 128));
    check(random_case(type, 6, 65, 65));
    check(random_case(type, 6, 65, 72));
    check(random_case(type, 3, 4099, 4224));
  }
}

TEST_CASE("a GPU computes the cross entropy of GPT-2's vocabulary") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) check(random_case(type, 1, 50257, 50304, 12.0));
}

TEST_CASE("a GPU writes the gradient beside the logits, or not at all") {
  Case one = random_case(DType::bf16, 6, 100, 104);
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const Results in_place = cross_entropy(bench, one);
  one.in_place = false;
  const Results beside = cross_entropy(bench, one);
  one.gradient = false;
  const Results without = cross_entropy(bench, one);
  check_equal(beside.d_logits, in_place.d_logits);
  check_equal(beside.losses, in_place.losses);
  check_equal(without.losses, in_place.losses);
  CHECK(without.correct == in_place.correct);
  CHECK(without.d_logits.empty());
}

TEST_CASE("a GPU's cross entropy has the same bits when it is computed again, at any alignment") {
  Case one = random_case(DType::f16, 3, 1000, 1000);
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const Results first = cross_entropy(bench, one);
  for (const std::int64_t offset : {0, 1}) {
    one.offset = offset;
    const Results again = cross_entropy(bench, one);
    check_equal(again.losses, first.losses);
    check_equal(again.d_logits, first.d_logits);
  }
}

TEST_CASE("a small loss on a GPU is not rounded away beside the probability 1") {
  Case one{.vocabulary = 300, .stride = 300, .logits = std::vector<double>(600, -20.0), .targets = {3, 299}};
  one.logits[3] = 5.0;
  one.logits[300 + 299] = 2.0;
  check(one);
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const Results results = cross_entropy(bench, one);
  check_close(results.losses, {299.0 * std::exp(-25.0), 299.0 * std::exp(-22.0)}, 1e-6, 0.0);
}

TEST_CASE("a GPU counts a row as correct if the first of its largest logits is the target's") {
  for (const DType type : {DType::f32, DType::bf16}) {
    Case one{.type = type, .vocabulary = 70, .stride = 72, .logits = std::vector<double>(4 * 72, 0.0)};
    one.targets = {0, 1, 41, 69};
    one.logits[2 * 72 + 41] = one.logits[2 * 72 + 60] = 2.0;  // first of two
    one.logits[3 * 72 + 17] = one.logits[3 * 72 + 69] = 2.0;  // second of two
    const auto both = each_device<Results>([&](Workbench& bench) { return cross_entropy(bench, one); });
    CHECK(both.gpu.correct == std::vector<std::int32_t>{1, 0, 1, 0});
    CHECK(both.cpu.correct == both.gpu.correct);
  }
}

TEST_CASE("logits that are not finite reach a GPU's loss and gradient") {
  const auto row_with = [](double value, std::size_t place) {
    Case one = random_case(DType::f32, 1, 100, 100);
    one.targets = {9};
    one.logits[place] = value;
    return one;
  };
  check(row_with(infinite, 50));
  check(row_with(infinite, 9));
  check(row_with(NAN, 50));
  check(row_with(-infinite, 50));  // a logit that is masked out
  Case all = row_with(0.0, 0);
  all.logits.assign(100, -infinite);
  check(all);
}

}  // namespace zt::test
