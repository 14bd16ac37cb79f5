// Embeddings: lookup and the deterministic gradient.
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

struct Shape {
  std::int64_t batch, length, columns, vocabulary, positions;
};

std::vector<Shape> shapes(Random& random) {
  std::vector<Shape> all = {{0, 4, 8, 5, 6},     {2, 3, 1, 4, 3},        {3, 5, 17, 1, 5},
                            {2, 40, 64, 65, 64}, {1, 20, 130, 2050, 33}, {2, 9, 600, 40, 9}};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t length = between(random, 1, 30);
    all.push_back({between(random, 1, 5), length, between(random, 1, 100), between(random, 1, 60),
                   length + between(random, 0, 10)});
  }
  return all;
}

std::vector<std::int32_t> some_tokens(Random& random, const Shape& shape) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < shape.batch * shape.length; ++i) {
    tokens.push_back(static_cast<std::int32_t>(between(random, 0, shape.vocabulary - 1)));
  }
  return tokens;
}

Dropout some_dropout(Random& random, const Shape& shape) {
  if (random() % 2 == 0) return {};
  return {.probability = 0.25F,
          .key = random(),
          .first_sample = between(random, 0, 9),
          .elements_per_sample = shape.length * shape.columns};
}

}  // namespace

TEST_CASE("embeddings are sums of two rows, dropped out, rounded once") {
  const std::uint64_t seed = 70;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const Shape& shape : shapes(random)) {
        const std::vector<float> table = rounded(type, normals(random, shape.vocabulary * shape.columns));
        const std::vector<float> position_table = rounded(type, normals(random, shape.positions * shape.columns));
        const std::vector<std::int32_t> tokens = some_tokens(random, shape);
        const Dropout dropout = some_dropout(random, shape);
        const std::int64_t count = shape.batch * shape.length * shape.columns;
        require_same_everywhere([&](Setup setup) {
          const Tensor token_table(type, table, setup.offset);
          const Tensor positions(type, position_table, setup.offset);
          Tensor out(type, count, setup.offset);
          EmbeddingForward op;
          op.tokens = tokens.data();
          op.token_table = token_table.view();
          op.position_table = positions.view();
          op.out = out.view();
          op.batch = shape.batch;
          op.length = shape.length;
          op.columns = shape.columns;
          op.vocabulary = shape.vocabulary;
          op.dropout = dropout;
          setup.run(op);
          for (std::int64_t i = 0; i < count && setup.threads == 1; ++i) {
            const std::int64_t row = i / shape.columns;
            const std::int64_t c = i % shape.columns;
            const auto token = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(row)]);
            const float sum = table[static_cast<std::size_t>(token * shape.columns + c)] +
                              position_table[static_cast<std::size_t>(row % shape.length * shape.columns + c)];
            REQUIRE(out.get(i) == round_to(type, sum * dropout_factor(dropout, i)));
          }
          return collect(out);
        });
      }
    }
  });
}

TEST_CASE("gradients of embeddings are sums in fp32 in order of position, to the bit") {
  const std::uint64_t seed = 71;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const Shape& shape : shapes(random)) {
        const DType table_type = random() % 2 == 0 ? type : DType::f32;
        const std::int64_t rows = shape.batch * shape.length;
        const std::vector<float> gradients = rounded(type, normals(random, rows * shape.columns));
        const std::vector<float> before = rounded(table_type, normals(random, shape.vocabulary * shape.columns));
        const std::vector<float> before_position =
            rounded(table_type, normals(random, shape.positions * shape.columns));
        const std::vector<std::int32_t> tokens = some_tokens(random, shape);
        const Dropout dropout = some_dropout(random, shape);
        const bool add_token = random() % 2 == 0;
        const bool add_position = random() % 2 == 0;

        std::vector<float> token_sums(before.size(), 0.0F);
        std::vector<float> position_sums(before_position.size(), 0.0F);
        for (std::int64_t i = 0; i < rows * shape.columns; ++i) {
          const std::int64_t row = i / shape.columns;
          const std::int64_t c = i % shape.columns;
          const float factor = dropout_factor(dropout, i);
          const float g = factor == 0.0F ? 0.0F : gradients[static_cast<std::size_t>(i)] * factor;
          const auto token = static_cast<std::int64_t>(tokens[static_cast<std::size_t>(row)]);
          token_sums[static_cast<std::size_t>(token * shape.columns + c)] += g;
          position_sums[static_cast<std::size_t>(row % shape.length * shape.columns + c)] += g;
        }
        const auto finished = [&](std::vector<float> sums, const std::vector<float>& old, bool add) {
          sums = rounded(table_type, sums);
          for (std::size_t i = 0; i < sums.size() && add; ++i) sums[i] = round_to(table_type, old[i] + sums[i]);
          return sums;
        };
        require_same_everywhere([&](Setup setup) {
          const Tensor d_out(type, gradients, setup.offset);
          Tensor d_tokens(table_type, before, setup.offset);
          Tensor d_positions(table_type, before_position, setup.offset);
          EmbeddingBackward op;
          op.tokens = tokens.data();
          op.d_out = d_out.view();
          op.d_token_table = d_tokens.view();
          op.d_position_table = d_positions.view();
          op.add_token = add_token;
          op.add_position = add_position;
          op.batch = shape.batch;
          op.length = shape.length;
          op.columns = shape.columns;
          op.vocabulary = shape.vocabulary;
          op.positions = shape.positions;
          op.dropout = dropout;
          setup.run(op);
          REQUIRE(d_tokens.values() == finished(token_sums, before, add_token));
          REQUIRE(d_positions.values() == finished(position_sums, before_position, add_position));
          return collect(d_tokens, d_positions);
        });
      }
    }
  });
}

TEST_CASE("a token at very many positions is summed without loss of small gradients of others") {
  // 4000 positions of one token, each of gradient 1: exact in fp32 although bf16 would stop at 256.
  const Shape shape{4, 1000, 8, 3, 1000};
  const Tensor d_out(DType::bf16, std::vector<float>(4000 * 8, 1.0F));
  const std::vector<std::int32_t> tokens(4000, 1);
  Tensor d_tokens(DType::f32, 3 * 8);
  Tensor d_positions(DType::bf16, 1000 * 8);
  EmbeddingBackward op;
  op.tokens = tokens.data();
  op.d_out = d_out.view();
  op.d_token_table = d_tokens.view();
  op.d_position_table = d_positions.view();
  op.batch = shape.batch;
  op.length = shape.length;
  op.columns = shape.columns;
  op.vocabulary = shape.vocabulary;
  op.positions = shape.positions;
  Setup{2, 0}.run(op);
  for (std::int64_t c = 0; c < 8; ++c) {
    REQUIRE(d_tokens.get(c) == 0.0F);
    REQUIRE(d_tokens.get(8 + c) == 4000.0F);
    REQUIRE(d_tokens.get(16 + c) == 0.0F);
    REQUIRE(d_positions.get(c) == 4.0F);
  }
}
