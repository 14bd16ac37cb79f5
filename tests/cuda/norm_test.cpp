// Layer normalization on a GPU against the CPU's.
#include "cuda/row_cases.h"

namespace zt::test {
namespace {

struct Case {
  DType type = DType::f32, vectors = DType::f32;
  std::int64_t rows = 0, columns = 0;
  bool with_delta = false, with_bias = true, with_residual = false;
  float dropout = 0.0F;
  std::int64_t offset = 0;  // of all tensors, in elements
  bool add = false;         // to what d_weight and d_bias hold
};

Dropout dropout_of(const Case& one) {
  return {.probability = one.dropout, .key = 77, .first_sample = 3, .elements_per_sample = one.rows * one.columns};
}

struct Forward {
  std::vector<double> sum, mean, rstd, out;
};

Forward forward(Workbench& bench, const Case& one) {
  const std::int64_t count = one.rows * one.columns;
  const auto tensor = [&](std::int64_t n, std::uint64_t key, DType type, double scale) {
    return shifted(bench, random_values(n, key, scale), type, one.offset);
  };
  LayerNormForward op;
  op.in = tensor(count, 1, one.type, 2.0);
  if (one.with_delta) {
    op.delta = tensor(count, 2, one.type, 1.0);
    op.sum = {const_cast<void*>(op.in.data), count, one.type};  // in place
  }
  op.weight = tensor(one.columns, 3, one.vectors, 1.0);
  if (one.with_bias) op.bias = tensor(one.columns, 4, one.vectors, 1.0);
  op.out = shifted_output(bench, count, one.type, one.offset);
  op.mean = bench.floats(one.rows);
  op.rstd = bench.floats(one.rows);
  op.rows = one.rows;
  op.columns = one.columns;
  op.dropout = dropout_of(one);
  bench.run(op);
  return {bench.read(op.sum), bench.read({op.mean, one.rows, DType::f32}), bench.read({op.rstd, one.rows, DType::f32}),
          bench.read(op.out)};
}

void check_forward(const Case& one) {
  INFO(one.rows << " rows of " << one.columns << " " << name_of(one.type) << ", vectors " << name_of(one.vectors));
  const auto [gpu, cpu] = each_device<Forward>([&](Workbench& bench) { return forward(bench, one); });
  check_equal(gpu.sum, cpu.sum);
  // The two sum in different orders: trees of depth about log C over short chains, far below sqrt(C) roundings.
  const double sum_error = std::sqrt(static_cast<double>(one.columns)) * 0x1p-24;
  check_close(gpu.mean, cpu.mean, 0.0, 3.0 * sum_error);
  check_close(gpu.rstd, cpu.rstd, 3.0 * sum_error + 4.0 * 0x1p-24, 0.0);
  // |weight|, |bias| <= 1, |normalized| <= sqrt(C) but in practice below 4; then a rounding on each side.
  check_close(gpu.out, cpu.out, 2.0 * unit_roundoff(one.type), 16.0 * sum_error + 16.0 * 0x1p-24);
}

struct Backward {
  std::vector<double> d_in, d_delta, d_weight, d_bias, out;
};

Backward backward(Workbench& bench, const Case& one) {
  const std::int64_t count = one.rows * one.columns;
  const auto tensor = [&](std::int64_t n, std::uint64_t key, DType type, double scale = 1.0) {
    return shifted(bench, random_values(n, key, scale), type, one.offset);
  };
  LayerNormBackward op;
  op.in = tensor(count, 1, one.type, 2.0);
  op.d_out = tensor(count, 2, one.type);
  op.d_in = tensor(count, 3, one.type);
  if (one.with_residual) op.d_residual = op.d_in;  // in place
  op.weight = tensor(one.columns, 4, one.vectors);
  op.mean = static_cast<float*>(bench.tensor(random_values(one.rows, 5, 0.1), DType::f32).data);
  op.rstd =
      static_cast<float*>(bench.tensor(std::vector<double>(static_cast<std::size_t>(one.rows), 0.9), DType::f32).data);
  if (one.with_delta) op.d_delta = shifted_output(bench, count, one.type, one.offset);
  op.d_weight = tensor(one.columns, 6, one.vectors);
  if (one.with_bias) op.d_bias = tensor(one.columns, 7, one.vectors);
  if (one.with_bias) op.bias = tensor(one.columns, 8, one.vectors);
  op.out = shifted_output(bench, count, one.type, one.offset);
  op.add_weight = op.add_bias = one.add;
  op.rows = one.rows;
  op.columns = one.columns;
  op.dropout = dropout_of(one);
  bench.run(op);
  return {bench.read(op.d_in), bench.read(op.d_delta), bench.read(op.d_weight), bench.read(op.d_bias),
          bench.read(op.out)};
}

void check_backward(const Case& one) {
  INFO(one.rows << " rows of " << one.columns << " " << name_of(one.type) << ", vectors " << name_of(one.vectors));
  const auto [gpu, cpu] = each_device<Backward>([&](Workbench& bench) { return backward(bench, one); });
  // Each element is of order 1; means of C terms below 2; a rounding on each side.
  const double u = unit_roundoff(one.type);
  check_close(gpu.d_in, cpu.d_in, 2.0 * u, 64.0 * 0x1p-24);
  check_close(gpu.out, cpu.out, 2.0 * u, 16.0 * 0x1p-24);
  const double scale = one.dropout > 0.0F ? 1.0 / (1.0 - static_cast<double>(one.dropout)) : 1.0;
  check_close(gpu.d_delta, cpu.d_delta, 4.0 * u, 64.0 * scale * 0x1p-24 + 2.0 * u * 64.0 * 0x1p-24);
  // What is dropped is dropped on both.
  for (std::size_t i = 0; i < gpu.d_delta.size(); ++i) {
    if (cpu.d_delta[i] == 0.0 && cpu.d_in[i] != 0.0) CHECK(gpu.d_delta[i] == 0.0);
  }
  // Sums of `rows` terms below 2, each order with an error of about sqrt(rows) of them; with add, another rounding.
  const double rows = static_cast<double>(one.rows);
  const double vectors = unit_roundoff(one.vectors);
  const double absolute = 8.0 * std::sqrt(rows) * 0x1p-24 * 2.0 + (one.add ? 2.0 * vectors * std::sqrt(rows) : 0.0);
  check_close(gpu.d_weight, cpu.d_weight, 2.0 * vectors, absolute);
  check_close(gpu.d_bias, cpu.d_bias, 2.0 * vectors, absolute);
}

}  // namespace

TEST_CASE("a GPU normalizes rows of any width") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check_forward({.type = type, .rows = 0, .columns = 8});
    check_forward({.type = type, .vectors = type, .rows = 3, .columns = 1});
    check_forward({.type = type, .rows = 9, .columns = 65, .with_delta = true, .with_bias = false});
    check_forward({.type = type, .vectors = type, .rows = 5, .columns = 384, .with_delta = true});
    check_forward({.type = type, .vectors = DType::bf16, .rows = 2, .columns = 1104});
  }
}

TEST_CASE("a GPU normalizes rows that do not fit a block's registers") {
  check_forward({.rows = 2, .columns = 8200, .with_delta = true, .dropout = 0.1F});
  check_forward({.type = DType::bf16, .rows = 1, .columns = 16391});
}

TEST_CASE("a GPU drops the same elements of what is added before a norm") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check_forward({.type = type, .rows = 4, .columns = 64, .with_delta = true, .dropout = 0.3F});
    check_forward({.type = type, .rows = 3, .columns = 37, .with_delta = true, .dropout = 0.3F});
  }
}

TEST_CASE("a norm's bits on a GPU do not depend on the alignment of its operands") {
  for (const DType type : {DType::f32, DType::bf16}) {
    Case one{.type = type, .rows = 3, .columns = 264, .with_delta = true, .with_residual = true, .dropout = 0.2F};
    const auto gpu = open_gpu();
    Workbench bench(*gpu);
    const Forward aligned = forward(bench, one);
    const Backward gradient = backward(bench, one);
    one.offset = 1;
    const Forward shifted = forward(bench, one);
    check_equal(shifted.mean, aligned.mean);
    check_equal(shifted.rstd, aligned.rstd);
    check_equal(shifted.out, aligned.out);
    const Backward shifted_gradient = backward(bench, one);
    check_equal(shifted_gradient.d_in, gradient.d_in);
    check_equal(shifted_gradient.d_delta, gradient.d_delta);
    check_equal(shifted_gradient.d_weight, gradient.d_weight);
    check_equal(shifted_gradient.d_bias, gradient.d_bias);
  }
}

TEST_CASE("a GPU's gradient of a norm agrees with the CPU's") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check_backward({.type = type, .rows = 0, .columns = 8});
    check_backward({.type = type, .vectors = type, .rows = 3, .columns = 1});
    check_backward({.type = type, .rows = 70, .columns = 65, .with_residual = true});
    check_backward({.type = type, .vectors = type, .rows = 20, .columns = 384, .with_residual = true, .add = true});
    check_backward({.type = type, .rows = 9, .columns = 48, .with_delta = true, .dropout = 0.25F});
    check_backward({.type = type, .rows = 9, .columns = 21, .with_delta = true, .with_bias = false, .dropout = 0.25F});
  }
}

TEST_CASE("a GPU's gradient of a norm of many rows agrees with the CPU's") {
  check_backward({.type = DType::bf16, .rows = 300, .columns = 12, .with_residual = true});
  check_backward({.rows = 8300, .columns = 3});  // the most chunks there are
}

TEST_CASE("a GPU's gradient of a norm of wide rows agrees with the CPU's") {
  check_backward({.rows = 9, .columns = 2100, .with_residual = true});
  check_backward({.type = DType::bf16, .rows = 2, .columns = 4105, .with_delta = true, .dropout = 0.1F});
  // Wider than the kernel that has all columns of a row in its threads.
  check_backward({.rows = 70, .columns = 4100, .with_residual = true, .add = true});
  check_backward({.type = DType::f16, .rows = 3, .columns = 8201, .with_delta = true, .with_bias = false});
}

TEST_CASE("a GPU's gradient of a norm may leave out what nobody wants") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  LayerNormBackward op;
  op.rows = 4;
  op.columns = 32;
  op.in = bench.tensor(random_values(128, 1), DType::f32);
  op.d_out = bench.tensor(random_values(128, 2), DType::f32);
  op.weight = bench.tensor(random_values(32, 3), DType::f32);
  op.mean = static_cast<float*>(bench.tensor({0.1, 0.2, 0.3, 0.4}, DType::f32).data);
  op.rstd = static_cast<float*>(bench.tensor({1.0, 1.1, 1.2, 1.3}, DType::f32).data);
  op.d_in = bench.output(128, DType::f32);
  op.d_weight = bench.output(32, DType::f32);
  op.d_bias = bench.output(32, DType::f32);
  bench.run(op);
  const auto d_in = bench.read(op.d_in);
  const auto d_bias = bench.read(op.d_bias);
  op.d_weight = {};
  op.d_bias = bench.output(32, DType::f32);
  bench.run(op);
  check_equal(bench.read(op.d_bias), d_bias);
  op.d_bias = {};
  op.d_in = bench.output(128, DType::f32);
  bench.run(op);
  check_equal(bench.read(op.d_in), d_in);
}

TEST_CASE("a GPU's gradient of a norm has the same bits when it is computed again") {
  const Case one{.type = DType::bf16, .rows = 100, .columns = 72, .with_residual = true};
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const Backward first = backward(bench, one);
  const Backward second = backward(bench, one);
  check_equal(second.d_in, first.d_in);
  check_equal(second.d_weight, first.d_weight);
  check_equal(second.d_bias, first.d_bias);
}

}  // namespace zt::test
