// Layer normalization, forward and backward, against double precision.
#include "simd_support.h"

using namespace zt;
using namespace zt::test;

namespace {

struct Case {
  DType type = DType::f32;
  DType vectors = DType::f32;
  std::int64_t rows = 0, columns = 0;
  bool with_bias = true, with_delta = false, with_residual = false;
  bool add_weight = false, add_bias = false;
  float mean = 0.0F;
  Dropout dropout{};
};

Case random_case(Random& random, DType type, std::int64_t rows, std::int64_t columns) {
  Case one;
  one.type = type;
  one.vectors = random() % 2 == 0 ? DType::f32 : type;
  one.rows = rows;
  one.columns = columns;
  one.with_bias = random() % 3 != 0;
  one.with_delta = random() % 2 == 0;
  one.with_residual = random() % 2 == 0;
  one.add_weight = random() % 2 == 0;
  one.add_bias = random() % 2 == 0;
  one.mean = random() % 3 == 0 ? 5.0F : 0.0F;
  if (random() % 2 == 0) {
    one.dropout = {.probability = 0.2F,
                   .key = random(),
                   .first_sample = between(random, 0, 50),
                   .elements_per_sample = rows * columns + 7};
  }
  return one;
}

// Shapes around vector widths, pieces and chunks of rows, and random ones.
std::vector<std::pair<std::int64_t, std::int64_t>> shapes(Random& random) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all = {{0, 5},   {3, 1},    {2, 2},   {5, 16},  {1, 17},
                                                            {64, 33}, {65, 384}, {130, 7}, {3, 513}, {2, 1600}};
  for (int i = 0; i < 4; ++i) all.emplace_back(between(random, 1, 90), between(random, 1, 300));
  return all;
}

void check_forward(const Case& one, Random& random) {
  const std::int64_t count = one.rows * one.columns;
  std::vector<float> in = normals(random, count);
  for (float& x : in) x += one.mean;
  in = rounded(one.type, in);
  const std::vector<float> delta = rounded(one.type, normals(random, count));
  const std::vector<float> weight = rounded(one.vectors, normals(random, one.columns));
  const std::vector<float> bias = rounded(one.vectors, normals(random, one.columns));
  require_same_everywhere([&](Setup setup) {
    const Tensor in_tensor(one.type, in, setup.offset);
    const Tensor delta_tensor(one.type, delta, setup.offset);
    Tensor sum(one.type, in, setup.offset);  // in place of in
    const Tensor weight_tensor(one.vectors, weight, setup.offset);
    const Tensor bias_tensor(one.vectors, bias, setup.offset);
    Tensor out(one.type, count, setup.offset);
    Tensor mean(DType::f32, one.rows, setup.offset);
    Tensor rstd(DType::f32, one.rows, setup.offset);
    LayerNormForward op;
    op.in = one.with_delta ? ConstTensorView(sum.view()) : in_tensor.view();
    if (one.with_delta) {
      op.delta = delta_tensor.view();
      op.sum = sum.view();
    }
    op.weight = weight_tensor.view();
    if (one.with_bias) op.bias = bias_tensor.view();
    op.out = out.view();
    op.mean = mean.floats();
    op.rstd = rstd.floats();
    op.rows = one.rows;
    op.columns = one.columns;
    op.dropout = one.dropout;
    setup.run(op);
    if (setup.threads != 1) return collect(sum, out, mean, rstd);
    for (std::int64_t r = 0; r < one.rows; ++r) {
      std::vector<double> x;
      double total = 0.0;
      double largest = 0.0;
      for (std::int64_t c = 0; c < one.columns; ++c) {
        const std::int64_t i = r * one.columns + c;
        const auto at = static_cast<std::size_t>(i);
        float value = in[at];
        if (one.with_delta) {
          value = round_to(one.type, value + delta[at] * dropout_factor(one.dropout, i));
          REQUIRE(sum.get(i) == value);
        }
        x.push_back(value);
        total += value;
        largest = std::max(largest, std::abs(static_cast<double>(value)));
      }
      const double mu = total / static_cast<double>(one.columns);
      double squares = 0.0;
      for (const double value : x) squares += (value - mu) * (value - mu);
      const double variance = squares / static_cast<double>(one.columns);
      const double expected_rstd = 1.0 / std::sqrt(variance + static_cast<double>(op.epsilon));
      // Sums of C values by chains of C / 4 vectors or less, far from their worst case.
      const double mean_error = 1e-6 * largest;
      require_close(mean.get(r), mu, DType::f32, 0.0, mean_error);
      require_close(rstd.get(r), expected_rstd, DType::f32, 1e-5, 0.0);
      for (std::int64_t c = 0; c < one.columns; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const double w = weight[at];
        const double b = one.with_bias ? bias[at] : 0.0;
        const double normalized = (x[at] - mu) * expected_rstd;
        const double error =
            std::abs(w) * (mean_error * expected_rstd + 1e-5 * std::abs(normalized)) + 2e-7 * std::abs(b);
        require_close(out.get(r * one.columns + c), normalized * w + b, one.type, 0.0, error);
      }
    }
    return collect(sum, out, mean, rstd);
  });
}

void check_backward(const Case& one, Random& random) {
  const std::int64_t count = one.rows * one.columns;
  const auto columns = static_cast<double>(one.columns);
  const std::vector<float> in = rounded(one.type, normals(random, count));
  const std::vector<float> d_out = rounded(one.type, normals(random, count));
  const std::vector<float> residual = rounded(one.type, normals(random, count));
  const std::vector<float> weight = rounded(one.vectors, normals(random, one.columns));
  const std::vector<float> d_weight_before = rounded(one.vectors, normals(random, one.columns));
  const std::vector<float> d_bias_before = rounded(one.vectors, normals(random, one.columns));
  const std::vector<float> bias = rounded(one.vectors, normals(random, one.columns));
  std::vector<float> means;
  std::vector<float> rstds;
  for (std::int64_t r = 0; r < one.rows; ++r) {
    means.push_back(normals(random, 1, 0.1F)[0]);  // any values: the gradient's formula takes them as they are
    rstds.push_back(0.8F + 0.1F * static_cast<float>(r % 5));
  }
  require_same_everywhere([&](Setup setup) {
    const Tensor in_tensor(one.type, in, setup.offset);
    const Tensor d_out_tensor(one.type, d_out, setup.offset);
    const Tensor weight_tensor(one.vectors, weight, setup.offset);
    Tensor mean(DType::f32, means, setup.offset);
    Tensor rstd(DType::f32, rstds, setup.offset);
    Tensor d_in(one.type, residual, setup.offset);  // in place of d_residual
    Tensor d_delta(one.type, count, setup.offset);
    Tensor d_weight(one.vectors, d_weight_before, setup.offset);
    Tensor d_bias(one.vectors, d_bias_before, setup.offset);
    LayerNormBackward op;
    op.in = in_tensor.view();
    op.d_out = d_out_tensor.view();
    if (one.with_residual) op.d_residual = d_in.view();
    op.weight = weight_tensor.view();
    op.mean = mean.floats();
    op.rstd = rstd.floats();
    op.d_in = d_in.view();
    if (one.with_delta) op.d_delta = d_delta.view();
    op.d_weight = d_weight.view();
    if (one.with_bias) op.d_bias = d_bias.view();
    const Tensor bias_tensor(one.vectors, bias, setup.offset);
    Tensor out(one.type, count, setup.offset);
    if (one.with_bias) op.bias = bias_tensor.view();
    op.out = out.view();
    op.add_weight = one.add_weight;
    op.add_bias = one.add_bias;
    op.rows = one.rows;
    op.columns = one.columns;
    op.dropout = one.dropout;
    setup.run(op);
    if (setup.threads != 1) return collect(d_in, d_delta, d_weight, d_bias, out);
    std::vector<double> weight_sums(static_cast<std::size_t>(one.columns));
    std::vector<double> weight_sizes = weight_sums;
    std::vector<double> bias_sums = weight_sums;
    std::vector<double> bias_sizes = weight_sums;
    for (std::int64_t r = 0; r < one.rows; ++r) {
      const double mu = means[static_cast<std::size_t>(r)];
      const double rs = rstds[static_cast<std::size_t>(r)];
      double sum_g = 0.0;
      double sum_g_xhat = 0.0;
      double size_g = 0.0;
      double size_g_xhat = 0.0;
      for (std::int64_t c = 0; c < one.columns; ++c) {
        const auto at = static_cast<std::size_t>(r * one.columns + c);
        const auto column = static_cast<std::size_t>(c);
        const double xhat = (in[at] - mu) * rs;
        const double g = static_cast<double>(d_out[at]) * weight[column];
        sum_g += g;
        sum_g_xhat += g * xhat;
        size_g += std::abs(g);
        size_g_xhat += std::abs(g * xhat);
        weight_sums[column] += d_out[at] * xhat;
        weight_sizes[column] += std::abs(d_out[at] * xhat);
        bias_sums[column] += d_out[at];
        bias_sizes[column] += std::abs(static_cast<double>(d_out[at]));
      }
      for (std::int64_t c = 0; c < one.columns; ++c) {
        const std::int64_t i = r * one.columns + c;
        const auto at = static_cast<std::size_t>(i);
        const double xhat = (in[at] - mu) * rs;
        const double g = static_cast<double>(d_out[at]) * weight[static_cast<std::size_t>(c)];
        double expected = rs * (g - sum_g / columns - xhat * sum_g_xhat / columns);
        if (one.with_residual) expected += residual[at];
        const double error = 1e-6 * (std::abs(expected) +
                                     rs * (std::abs(g) + size_g / columns + std::abs(xhat) * size_g_xhat / columns) +
                                     (one.with_residual ? std::abs(residual[at]) : 0.0F));
        require_close(d_in.get(i), expected, one.type, 0.0, error);
        const double scaled = xhat * weight[static_cast<std::size_t>(c)];
        const double shift = one.with_bias ? bias[static_cast<std::size_t>(c)] : 0.0;
        require_close(out.get(i), scaled + shift, one.type, 0.0, 3e-7 * (std::abs(scaled) + std::abs(shift)));
        if (one.with_delta) {
          const float factor = dropout_factor(one.dropout, i);
          REQUIRE(d_delta.get(i) == (factor == 0.0F ? 0.0F : round_to(one.type, d_in.get(i) * factor)));
        }
      }
    }
    const auto check_sums = [&](const Tensor& got, const std::vector<double>& sums, const std::vector<double>& sizes,
                                const std::vector<float>& before, bool add) {
      for (std::int64_t c = 0; c < one.columns; ++c) {
        const auto at = static_cast<std::size_t>(c);
        double error = 80 * 0x1p-24 * sizes[at];
        double expected = sums[at];
        if (add) {
          error += 1.01 * unit_roundoff(one.vectors) * std::abs(expected);
          expected += before[at];
        }
        require_close(got.get(c), expected, one.vectors, 0.0, error);
      }
    };
    check_sums(d_weight, weight_sums, weight_sizes, d_weight_before, one.add_weight);
    if (one.with_bias) check_sums(d_bias, bias_sums, bias_sizes, d_bias_before, one.add_bias);
    return collect(d_in, d_delta, d_weight, d_bias, out);
  });
}

}  // namespace

TEST_CASE("the gradient of a layer norm finds forward's output again, to the bit") {
  Random random(51);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const DType vectors : {DType::f32, type}) {
        for (const std::int64_t columns : {1, 7, 48, 515}) {
          constexpr std::int64_t rows = 5;
          const Tensor in(type, normals(random, rows * columns), 1);
          const Tensor weight(vectors, normals(random, columns), 0);
          const Tensor bias(vectors, normals(random, columns), 2);
          Tensor forward_out(type, rows * columns, 0);
          Tensor again(type, rows * columns, 3);
          Tensor d_in(type, rows * columns, 0);
          Tensor mean(DType::f32, rows, 0);
          Tensor rstd(DType::f32, rows, 0);
          LayerNormForward forward{.in = in.view(), .weight = weight.view(), .bias = bias.view()};
          forward.out = forward_out.view(), forward.mean = mean.floats(), forward.rstd = rstd.floats();
          forward.rows = rows, forward.columns = columns;
          Setup{2, 0}.run(forward);
          LayerNormBackward backward{.in = in.view(), .d_out = in.view(), .weight = weight.view()};
          backward.mean = mean.floats(), backward.rstd = rstd.floats(), backward.d_in = d_in.view();
          backward.bias = bias.view(), backward.out = again.view();
          backward.rows = rows, backward.columns = columns;
          Setup{2, 0}.run(backward);
          for (std::int64_t i = 0; i < rows * columns; ++i) REQUIRE(again.get(i) == forward_out.get(i));
        }
      }
    }
  });
}

TEST_CASE("layer norm forward equals double precision for many shapes, dtypes and options") {
  const std::uint64_t seed = 50;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const auto& [rows, columns] : shapes(random)) {
        INFO("dtype " << name_of(type) << ", rows " << rows << ", columns " << columns);
        check_forward(random_case(random, type, rows, columns), random);
      }
    }
  });
}

TEST_CASE("layer norm backward equals double precision for many shapes, dtypes and options") {
  const std::uint64_t seed = 51;
  Random random(seed);
  INFO("seed " << seed);
  for_instruction_sets([&] {
    for (const DType type : all_dtypes) {
      for (const auto& [rows, columns] : shapes(random)) {
        INFO("dtype " << name_of(type) << ", rows " << rows << ", columns " << columns);
        check_backward(random_case(random, type, rows, columns), random);
      }
    }
  });
}

TEST_CASE("layer norm works on the widest rows and on one column") {
  Random random(52);
  Case wide = random_case(random, DType::bf16, 3, 16384);
  wide.with_delta = true;
  check_forward(wide, random);
  check_backward(wide, random);
  // One column is its own mean: the bias remains.
  const Tensor in(DType::f32, {3.0F, -7.0F});
  const Tensor weight(DType::f32, std::vector<float>{2.0F});
  const Tensor bias(DType::f32, std::vector<float>{0.25F});
  Tensor out(DType::f32, 2);
  Tensor mean(DType::f32, 2);
  Tensor rstd(DType::f32, 2);
  LayerNormForward op;
  op.in = in.view();
  op.weight = weight.view();
  op.bias = bias.view();
  op.out = out.view();
  op.mean = mean.floats();
  op.rstd = rstd.floats();
  op.rows = 2;
  op.columns = 1;
  Setup{}.run(op);
  REQUIRE(out.values() == std::vector<float>{0.25F, 0.25F});
  REQUIRE(mean.values() == std::vector<float>{3.0F, -7.0F});
}

TEST_CASE("a NaN or an infinity spoils its row of a layer norm and no other") {
  for_instruction_sets([] {
    std::vector<float> values(3 * 20, 1.0F);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
    values[5] = not_a_number;
    values[45] = infinite;
    const Tensor in(DType::f16, values);
    const Tensor weight(DType::f32, std::vector<float>(20, 1.0F));
    Tensor out(DType::f16, 60);
    Tensor mean(DType::f32, 3);
    Tensor rstd(DType::f32, 3);
    LayerNormForward op;
    op.in = in.view();
    op.weight = weight.view();
    op.out = out.view();
    op.mean = mean.floats();
    op.rstd = rstd.floats();
    op.rows = 3;
    op.columns = 20;
    Setup{}.run(op);
    for (std::int64_t c = 0; c < 20; ++c) {
      REQUIRE(std::isnan(out.get(c)));
      REQUIRE(std::isfinite(out.get(20 + c)));
      REQUIRE(std::isnan(out.get(40 + c)));
    }
  });
}
