// Muon's Newton-Schulz iteration held against what it must do to singular values, and against its definition in double.
#include "optim/muon.h"

#include <cmath>
#include <numeric>
#include <random>

#include "catch_compat.h"
#include "device/counting/counting_device.h"
#include "device/cpu/cpu_device.h"

using namespace zt;

namespace {

using Matrix = std::vector<double>;  // row-major

OptimizerSettings muon_settings() {
  OptimizerSettings settings;
  settings.type = "Muon";
  settings.learning_rate = 0.5;
  settings.momentum = 0.75;
  return settings;
}

// What five rounds make of a singular value.
double drawn_to_one(double value) {
  for (int round = 0; round < newton_schulz_rounds; ++round) {
    const double square = value * value;
    value *= static_cast<double>(newton_schulz_a) +
             square * (static_cast<double>(newton_schulz_b) + square * static_cast<double>(newton_schulz_c));
  }
  return value;
}

// `count` orthonormal vectors of so many elements, by Gram and Schmidt, twice for accuracy.
std::vector<Matrix> orthonormal(std::int64_t count, std::int64_t elements, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::vector<Matrix> vectors;
  for (std::int64_t i = 0; i < count; ++i) {
    Matrix v(static_cast<std::size_t>(elements));
    for (double& x : v) x = normal(random);
    for (int pass = 0; pass < 2; ++pass) {
      for (const Matrix& other : vectors) {
        const double along = std::inner_product(v.begin(), v.end(), other.begin(), 0.0);
        for (std::size_t k = 0; k < v.size(); ++k) v[k] -= along * other[k];
      }
      const double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
      for (double& x : v) x /= norm;
    }
    vectors.push_back(std::move(v));
  }
  return vectors;
}

Matrix with_values(const std::vector<Matrix>& left, const std::vector<Matrix>& right,
                   const std::vector<double>& values) {
  const std::size_t rows = left.front().size();
  const std::size_t columns = right.front().size();
  Matrix sum(rows * columns);
  for (std::size_t k = 0; k < values.size(); ++k) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) sum[i * columns + j] += values[k] * left[k][i] * right[k][j];
    }
  }
  return sum;
}

std::vector<float> made_orthogonal(const std::vector<float>& in, const MatrixShape& shape) {
  const auto optimizer = make_muon(muon_settings());
  MatrixRule& rule = *optimizer->matrix_rule();
  CountingDevice counting([](const std::vector<Operation>&) { return std::int64_t{0}; }, "counting");
  rule.prepare(counting, std::array{shape});
  rule.orthogonalize(counting, {nullptr, shape.rows * shape.columns, DType::f32}, shape);
  cpu::CpuDevice device(1);
  for (const Operation& operation : counting.operations()) device.prepare(operation);
  device.reserve_workspace();
  rule.prepare(device, std::array{shape});
  std::vector<float> out = in;
  rule.orthogonalize(device, {out.data(), static_cast<std::int64_t>(out.size()), DType::f32}, shape);
  device.synchronize(Stream::compute);
  return out;
}

}  // namespace

TEST_CASE("Newton-Schulz rounds draw singular values to 1 and leave singular vectors") {
  std::mt19937 random(7);
  const std::vector<MatrixShape> shapes = {{1, 1}, {1, 9}, {9, 1}, {6, 6}, {5, 23}, {40, 7}, {64, 96}, {96, 64}};
  for (const MatrixShape& shape : shapes) {
    INFO(shape.rows << " x " << shape.columns);
    const std::int64_t rank = std::min(shape.rows, shape.columns);
    const auto left = orthonormal(rank, shape.rows, random);
    const auto right = orthonormal(rank, shape.columns, random);
    // Of very different sizes, the smallest a twentieth of the largest; norms far from 1 do not matter.
    std::vector<double> values;
    for (std::int64_t k = 0; k < rank; ++k)
      values.push_back(300.0 * (1.0 - 0.95 * static_cast<double>(k) / static_cast<double>(rank)));
    const double norm = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    std::vector<double> drawn;
    for (const double value : values) {
      drawn.push_back(drawn_to_one(value / norm));
      if (value / norm > 0.02) {
        CHECK(drawn.back() > 0.65);
        CHECK(drawn.back() < 1.25);
      }
    }
    const Matrix exact = with_values(left, right, values);
    const std::vector<float> out = made_orthogonal({exact.begin(), exact.end()}, shape);
    const Matrix expected = with_values(left, right, drawn);
    double largest = 0.0;
    for (std::size_t i = 0; i < out.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(out[i]) - expected[i]));
    CHECK(largest < 2e-5);
  }
}

TEST_CASE(
    "A matrix without a gradient stays where it is, and one of tiny gradients moves as far as one of large ones") {
  CHECK(made_orthogonal(std::vector<float>(12, 0.0F), {3, 4}) == std::vector<float>(12, 0.0F));
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> in(12 * 20);
  for (float& x : in) x = normal(random);
  std::vector<float> large = in;
  for (float& x : large) x *= 0x1p40F;
  std::vector<float> small = in;
  for (float& x : small) x *= 0x1p-12F;
  const std::vector<float> out = made_orthogonal(in, {12, 20});
  const std::vector<float> of_large = made_orthogonal(large, {12, 20});
  const std::vector<float> of_small = made_orthogonal(small, {12, 20});
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(of_large[i] == Approx(out[i]).margin(1e-4));
    CHECK(of_small[i] == Approx(out[i]).margin(1e-3));  // 1e-7 is added to its norm
  }
}

TEST_CASE("Muon's pieces: momentum, direction, rates, the size of tall matrices, decay") {
  OptimizerSettings settings = muon_settings();
  settings.weight_decay = 0.25;
  settings.matrix_rate = 0.5;
  settings.other_rate = 0.1;
  for (const bool nesterov : {false, true}) {
    settings.nesterov = nesterov;
    const auto optimizer = make_muon(settings);
    CHECK(optimizer->moments() == 2);
    MatrixRule& rule = *optimizer->matrix_rule();
    CHECK(rule.moments() == 1);
    cpu::CpuDevice device(1);
    std::vector<float> weight = {8.0F, -4.0F}, gradient = {2.0F, 6.0F}, momentum = {1.0F, 0.0F}, direction(2);
    OptimizerPiece piece;
    piece.whole = true;
    piece.master = {weight.data(), 2, DType::f32};
    piece.gradient = {gradient.data(), 2, DType::f32};
    piece.moments[0] = {momentum.data(), 2, DType::f32};
    OptimizerStep step;
    step.scheduled.learning_rate = 1.0;
    step.factor = 0.5F;
    rule.direction(device, piece, {direction.data(), 2, DType::f32}, step);
    // g = {1, 3}: m = {1, 0} + {0, 3} / 4.
    CHECK(momentum == std::vector<float>{1.0F, 0.75F});
    CHECK(direction == (nesterov ? std::vector<float>{1.0F, 1.3125F} : std::vector<float>{1.0F, 0.75F}));
    const std::vector<float> orthogonal = {1.0F, -2.0F};
    // The rate 0.5: weights shrink by an eighth; 4 outputs of 1 input double the step.
    rule.apply(device, piece, {orthogonal.data(), 2, DType::f32}, {4, 1}, step);
    CHECK(weight == std::vector<float>{8.0F * 0.875F - 1.0F, -4.0F * 0.875F + 2.0F});
    piece.decay = false;
    weight = {8.0F, -4.0F};
    rule.apply(device, piece, {orthogonal.data(), 2, DType::f32}, {1, 4}, step);
    CHECK(weight == std::vector<float>{7.5F, -3.0F});
  }
}
