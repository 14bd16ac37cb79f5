// Operations that add up over rows or positions: the same bits in every order of threads and blocks, in one process.
#include <functional>

#include "cuda/operation_check.h"
#include "cuda_emulation/emulation.h"

namespace zt::test {
namespace {

// The results of `run` in forward order; those of other orders must be equal.
void check_orders(const std::function<std::vector<TensorView>(Workbench&)>& run) {
  const auto in_order = [&](emulation::Order order, std::uint64_t seed) {
    emulation::Settings wanted = emulation::settings();
    wanted.order = order;
    wanted.seed = seed;
    const emulation::Configured configured(wanted);
    const auto gpu = open_gpu();
    Workbench bench(*gpu);
    std::vector<std::vector<std::uint8_t>> bytes;
    for (const TensorView& view : run(bench)) {
      bytes.push_back(bench.read_integers(static_cast<const std::uint8_t*>(view.data), view.bytes()));
    }
    return bytes;
  };
  const auto expected = in_order(emulation::Order::forward, 1);
  CHECK(in_order(emulation::Order::reversed, 1) == expected);
  for (const std::uint64_t seed : {2, 3, 4}) CHECK(in_order(emulation::Order::shuffled, seed) == expected);
}

TensorView random_tensor(Workbench& bench, std::int64_t count, std::uint64_t key, DType dtype = DType::f32) {
  return bench.tensor(random_values(count, key), dtype);
}

}  // namespace

TEST_CASE("a GPU's gradient of a bias has the same bits in every order of threads") {
  check_orders([](Workbench& bench) {
    BiasGradient op{.d_out = random_tensor(bench, 1300 * 24, 1), .d_bias = bench.output(24, DType::f32)};
    op.rows = 1300;
    op.columns = 24;
    bench.run(op);
    return std::vector{op.d_bias};
  });
}

TEST_CASE("a GPU's gradient of a norm has the same bits in every order of threads") {
  for (const std::int64_t columns : {40, 4104}) {  // the kernel for usual widths, and that for wide rows
    check_orders([&](Workbench& bench) {
      const std::int64_t rows = columns == 40 ? 200 : 70;
      LayerNormBackward op;
      op.in = random_tensor(bench, rows * columns, 1);
      op.d_out = random_tensor(bench, rows * columns, 2);
      op.weight = random_tensor(bench, columns, 3);
      op.mean = random_tensor(bench, rows, 4).as<float>();
      op.rstd = random_tensor(bench, rows, 5).as<float>();
      op.d_in = bench.output(rows * columns, DType::f32);
      op.d_weight = bench.output(columns, DType::f32);
      op.d_bias = bench.output(columns, DType::f32);
      op.rows = rows;
      op.columns = columns;
      bench.run(op);
      return std::vector{op.d_in, op.d_weight, op.d_bias};
    });
  }
}

TEST_CASE("a GPU's gradients of embeddings have the same bits in every order of threads") {
  check_orders([](Workbench& bench) {
    constexpr std::int64_t positions = 2 * 1100;  // three tiles of the sort
    std::vector<std::int32_t> tokens;
    for (std::uint64_t i = 0; i < positions; ++i) {
      const std::uint32_t bits = random_bits(3, i);
      tokens.push_back(static_cast<std::int32_t>(bits % 3 == 0 ? 599 : bits / 3 % 600));
    }
    EmbeddingBackward op;
    op.tokens = bench.integers(tokens);
    op.d_out = random_tensor(bench, positions * 4, 1);
    op.d_token_table = bench.output(600 * 4, DType::f32);
    op.d_position_table = bench.output(1100 * 4, DType::f32);
    op.batch = 2;
    op.length = op.positions = 1100;
    op.columns = 4;
    op.vocabulary = 600;
    bench.run(op);
    return std::vector{op.d_token_table, op.d_position_table};
  });
}

TEST_CASE("a GPU's cross entropy has the same bits in every order of threads") {
  check_orders([](Workbench& bench) {
    CrossEntropy op;
    op.d_logits = bench.tensor(random_values(3 * 3000, 1, 8.0), DType::bf16);
    op.logits = op.d_logits;
    op.targets = bench.integers(std::vector<std::int32_t>{7, 2997, -1});
    op.losses = bench.floats(3);
    op.rows = 3;
    op.vocabulary = 2998;
    op.stride = 3000;
    bench.run(op);
    return std::vector{op.d_logits, TensorView(op.losses, 3, DType::f32)};
  });
}

}  // namespace zt::test
