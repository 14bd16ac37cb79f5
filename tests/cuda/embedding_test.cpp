// Embeddings on a GPU against the CPU's. Both add up in the order of positions, so all is equal to the bit.
#include "cuda/row_cases.h"

namespace zt::test {
namespace {

struct Case {
  DType type = DType::f32, tables = DType::f32;
  std::int64_t batch = 0, length = 0, columns = 0, vocabulary = 0;
  float dropout = 0.0F;
  std::int64_t offset = 0;  // of all tensors, in elements
  bool add = false;
  std::int64_t more_positions = 0;  // of the table than the length
};

Dropout dropout_of(const Case& one) {
  return {.probability = one.dropout, .key = 99, .first_sample = 5, .elements_per_sample = one.length * one.columns};
}

// A few tokens are frequent, as in text.
std::vector<std::int32_t> tokens_of(const Case& one) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < one.batch * one.length; ++i) {
    const std::uint32_t bits = random_bits(7, static_cast<std::uint64_t>(i));
    const auto vocabulary = static_cast<std::uint32_t>(one.vocabulary);
    tokens.push_back(static_cast<std::int32_t>(bits % 4 == 0 ? vocabulary - 1 : bits / 4 % vocabulary));
  }
  return tokens;
}

std::vector<double> forward(Workbench& bench, const Case& one) {
  EmbeddingForward op;
  op.tokens = bench.integers(tokens_of(one));
  op.token_table = shifted(bench, random_values(one.vocabulary * one.columns, 1), one.tables, one.offset);
  op.position_table =
      shifted(bench, random_values((one.length + one.more_positions) * one.columns, 2), one.tables, one.offset);
  op.out = shifted_output(bench, one.batch * one.length * one.columns, one.type, one.offset);
  op.batch = one.batch;
  op.length = one.length;
  op.columns = one.columns;
  op.vocabulary = one.vocabulary;
  op.dropout = dropout_of(one);
  bench.run(op);
  return bench.read(op.out);
}

struct Gradients {
  std::vector<double> tokens, positions;
};

Gradients backward(Workbench& bench, const Case& one, const std::vector<std::int32_t>& tokens) {
  EmbeddingBackward op;
  op.tokens = bench.integers(tokens);
  op.positions = one.length + one.more_positions;
  op.d_out = shifted(bench, random_values(one.batch * one.length * one.columns, 3), one.type, one.offset);
  op.d_token_table = shifted(bench, random_values(one.vocabulary * one.columns, 4), one.tables, one.offset);
  op.d_position_table = shifted(bench, random_values(op.positions * one.columns, 5), one.tables, one.offset);
  op.add_token = op.add_position = one.add;
  op.batch = one.batch;
  op.length = one.length;
  op.columns = one.columns;
  op.vocabulary = one.vocabulary;
  op.dropout = dropout_of(one);
  bench.run(op);
  return {bench.read(op.d_token_table), bench.read(op.d_position_table)};
}

void check_backward(const Case& one, const std::vector<std::int32_t>& tokens) {
  INFO(one.batch << " x " << one.length << " positions of " << one.columns << " " << name_of(one.type)
                 << ", vocabulary " << one.vocabulary);
  const auto both = each_device<Gradients>([&](Workbench& bench) { return backward(bench, one, tokens); });
  check_equal(both.gpu.tokens, both.cpu.tokens);
  check_equal(both.gpu.positions, both.cpu.positions);
}
void check_backward(const Case& one) { check_backward(one, tokens_of(one)); }

}  // namespace

TEST_CASE("a GPU embeds tokens and positions") {
  const auto check = [](const Case& one) {
    const auto both = each_device<std::vector<double>>([&](Workbench& bench) { return forward(bench, one); });
    check_equal(both.gpu, both.cpu);
  };
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check({.type = type, .tables = type, .batch = 0, .length = 4, .columns = 8, .vocabulary = 3});
    check({.type = type, .tables = type, .batch = 2, .length = 9, .columns = 264, .vocabulary = 65});
    check({.type = type, .tables = type, .batch = 3, .length = 5, .columns = 33, .vocabulary = 7, .dropout = 0.3F});
    check({.type = type, .batch = 1, .length = 7, .columns = 24, .vocabulary = 2, .dropout = 0.3F, .offset = 1});
    check({.type = type, .tables = DType::bf16, .batch = 2, .length = 3, .columns = 16, .vocabulary = 5});
  }
}

TEST_CASE("a GPU adds up the gradients of embeddings in the order of positions") {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    check_backward({.type = type, .tables = type, .batch = 3, .length = 30, .columns = 264, .vocabulary = 65});
    check_backward({.type = type,
                    .tables = type,
                    .batch = 9,
                    .length = 11,
                    .columns = 33,
                    .vocabulary = 2,
                    .dropout = 0.3F,
                    .add = true,
                    .more_positions = 3});
    check_backward({.type = type, .batch = 40, .length = 3, .columns = 8, .vocabulary = 20, .add = true});
    check_backward({.type = type,
                    .batch = 2,
                    .length = 9,
                    .columns = 16,
                    .vocabulary = 11,
                    .dropout = 0.2F,
                    .offset = 1,
                    .more_positions = 2});
  }
}

TEST_CASE("a GPU sorts the positions of large vocabularies and batches") {
  // Two digits of 5 bits, and tiles of 1024 positions of which the last is not full.
  check_backward({.batch = 3, .length = 701, .columns = 4, .vocabulary = 700});
  // Three digits.
  check_backward({.type = DType::bf16, .batch = 1, .length = 1500, .columns = 1, .vocabulary = 300'000});
}

TEST_CASE("a GPU adds up the gradient of a token that fills the batch") {
  const Case one{.type = DType::bf16, .batch = 2, .length = 600, .columns = 40, .vocabulary = 50};
  check_backward(one, std::vector<std::int32_t>(1200, 7));
}

TEST_CASE("a GPU's gradients of an empty batch of embeddings are 0, or stay") {
  Case one{.batch = 0, .length = 3, .columns = 5, .vocabulary = 4, .more_positions = 1};
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  Gradients none = backward(bench, one, {});
  check_equal(none.tokens, std::vector<double>(20, 0.0));
  check_equal(none.positions, std::vector<double>(20, 0.0));
  one.add = true;
  none = backward(bench, one, {});
  check_equal(none.tokens, bench.read(bench.tensor(random_values(20, 4), DType::f32)));
  check_equal(none.positions, bench.read(bench.tensor(random_values(20, 5), DType::f32)));
}

TEST_CASE("a GPU may be asked for the gradient of one of the tables") {
  const auto gpu = open_gpu();
  Workbench bench(*gpu);
  const Case one{.batch = 2, .length = 8, .columns = 12, .vocabulary = 9};
  const Gradients expected = backward(bench, one, tokens_of(one));
  EmbeddingBackward op;
  op.tokens = bench.integers(tokens_of(one));
  op.d_out = bench.tensor(random_values(16 * 12, 3), DType::f32);
  op.batch = 2;
  op.length = op.positions = 8;
  op.columns = 12;
  op.vocabulary = 9;
  EmbeddingBackward tokens = op;
  tokens.d_token_table = bench.output(9 * 12, DType::f32);
  bench.run(tokens);
  check_equal(bench.read(tokens.d_token_table), expected.tokens);
  EmbeddingBackward positions = op;
  positions.d_position_table = bench.output(8 * 12, DType::f32);
  bench.run(positions);
  check_equal(bench.read(positions.d_position_table), expected.positions);
}

}  // namespace zt::test
