// The gradient of a bias on a GPU against the CPU's.
#include "cuda/row_cases.h"

namespace zt::test {
namespace {

struct Case {
  DType type = DType::f32, out = DType::f32;
  std::int64_t rows = 0, columns = 0;
  bool add = false;
  std::int64_t offset = 0;
};

std::vector<double> bias_gradient(Workbench& bench, const Case& one) {
  BiasGradient op;
  op.d_out = shifted(bench, random_values(one.rows * one.columns, 1), one.type, one.offset);
  op.d_bias = shifted(bench, random_values(one.columns, 2), one.out, one.offset);
  op.rows = one.rows;
  op.columns = one.columns;
  op.add = one.add;
  bench.run(op);
  return bench.read(op.d_bias);
}

void check(const Case& one) {
  INFO(one.rows << " rows of " << one.columns << " " << name_of(one.type) << " into " << name_of(one.out));
  const auto both = each_device<std::vector<double>>([&](Workbench& bench) { return bias_gradient(bench, one); });
  // Two orders of adding values below 1: random walks of roundings of sums of about sqrt(rows). Then one rounding on
  // each side, and with add another of a sum that may cancel.
  const double rows = std::max(1.0, static_cast<double>(one.rows));
  const double u = unit_roundoff(one.out);
  check_close(both.gpu, both.cpu, 2.0 * u, 2.0 * rows * 0x1p-24 + (one.add ? 4.0 * u * std::sqrt(rows) : 0.0));
}

}  // namespace

TEST_CASE("a GPU adds up the gradient of a bias") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check({.type = type, .rows = 1, .columns = 1});
    check({.type = type, .rows = 3, .columns = 65});
    check({.type = type, .out = type, .rows = 130, .columns = 264});
    check({.type = type, .out = type, .rows = 65, .columns = 301, .add = true});
    check({.type = type, .rows = 200, .columns = 16, .add = true});
  }
}

TEST_CASE("a GPU adds up the gradient of a bias over more rows than there are chunks") {
  check({.type = DType::bf16, .rows = 70'000, .columns = 3});
}

TEST_CASE("a GPU's gradient of a bias over no rows is 0, or stays") {
  const Case none{.rows = 0, .columns = 40};
  Case stays = none;
  stays.add = true;
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  check_equal(bias_gradient(bench, none), std::vector<double>(40, 0.0));
  check_equal(bias_gradient(bench, stays), bench.read(bench.tensor(random_values(40, 2), DType::f32)));
}

TEST_CASE("a GPU's gradient of a bias has the same bits when it is computed again, at any alignment") {
  Case one{.type = DType::bf16, .rows = 300, .columns = 72};
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const auto first = bias_gradient(bench, one);
  check_equal(bias_gradient(bench, one), first);
  one.offset = 3;
  check_equal(bias_gradient(bench, one), first);
}

}  // namespace zt::test
