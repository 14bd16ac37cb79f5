#include "cuda/bits_check.h"

namespace zt::test {
namespace {

struct Shape {
  std::int64_t rows = 0, columns = 0;
};
// No rows, no columns, single ones, parts of a warp's and of a block's turn, and rows that a block has to itself.
constexpr Shape shapes[] = {{0, 5}, {3, 0}, {1, 1}, {9, 3}, {17, 33}, {5, 150}, {2, 1024}, {3, 1025}, {2, 2500}};

struct Result {
  std::vector<double> losses, gradient;
};

Result run(Device& device, const Shape& shape, DType dtype, bool masked, bool in_place, bool with_gradient) {
  Workbench bench(device);
  const std::int64_t count = shape.rows * shape.columns;
  const Operand prediction = operand(bench, random_values(count, 1, 3.0), dtype, 1);
  const Operand gradient = in_place ? prediction : operand(bench, random_values(count, 2), dtype, 1);
  std::vector<std::int32_t> valid(static_cast<std::size_t>(shape.rows));
  for (std::size_t r = 0; r < valid.size(); ++r) valid[r] = r % 3 == 1 ? 0 : 1;
  const TensorView losses = bench.output(shape.rows, DType::f32);
  bench.run(SquaredError{.prediction = prediction.view,
                         .targets = bench.tensor(random_values(count, 3), DType::f32).as<float>(),
                         .valid = masked ? bench.integers(valid) : nullptr,
                         .losses = losses.as<float>(),
                         .d_prediction = with_gradient ? gradient.view : TensorView{},
                         .rows = shape.rows,
                         .columns = shape.columns,
                         .scale = 0.37F});
  return {bench.read(losses), bench.read(gradient.whole)};
}

}  // namespace

TEST_CASE("squared errors on a GPU have the CPU's losses, and its gradients to the bit") {
  const auto gpu = open_gpu();
  cpu::CpuDevice cpu(1);
  for (const Shape& shape : shapes) {
    for (const DType dtype : all_dtypes) {
      for (const bool masked : {false, true}) {
        for (const bool in_place : {false, true}) {
          INFO(shape.rows << " rows of " << shape.columns << ", " << name_of(dtype) << ", masked " << masked
                          << ", in place " << in_place);
          const Result actual = run(*gpu, shape, dtype, masked, in_place, true);
          const Result expected = run(cpu, shape, dtype, masked, in_place, true);
          check_equal(actual.gradient, expected.gradient);
          // Sums of squares in two orders, of at most 80 additions one after the other each.
          check_close(actual.losses, expected.losses, 2 * 80 * 0x1p-24, 0.0);
        }
      }
    }
  }
}

TEST_CASE("a squared error without a gradient leaves the predictions alone") {
  const auto gpu = open_gpu();
  cpu::CpuDevice cpu(1);
  const Result actual = run(*gpu, {7, 20}, DType::f32, true, true, false);
  const Result expected = run(cpu, {7, 20}, DType::f32, true, true, false);
  check_equal(actual.gradient, expected.gradient);
  check_close(actual.losses, expected.losses, 20 * 0x1p-24, 0.0);
}

TEST_CASE("losses of a GPU do not depend on where rows begin in memory") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const std::vector<double> values = random_values(2 * 1500, 8);
  std::vector<double> losses[2];
  for (const std::int64_t offset : {0, 1}) {
    const TensorView out = bench.output(2, DType::f32);
    bench.run(SquaredError{.prediction = operand(bench, values, DType::f32, offset).view,
                           .targets = operand(bench, random_values(3000, 9), DType::f32, offset).view.as<float>(),
                           .losses = out.as<float>(),
                           .rows = 2,
                           .columns = 1500});
    losses[offset] = bench.read(out);
  }
  check_equal(losses[1], losses[0]);
}

}  // namespace zt::test
