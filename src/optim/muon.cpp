#include "optim/muon.h"

#include <algorithm>
#include <cmath>

namespace zt {

namespace {

class MuonRule final : public MatrixRule {
 public:
  explicit MuonRule(const OptimizerSettings& settings) : settings_(settings) {}

  int moments() const override { return 1; }

  void prepare(Device& device, std::span<const MatrixShape> shapes) override {
    std::int64_t square = 0;
    std::int64_t matrix = 0;
    for (const MatrixShape& shape : shapes) {
      const std::int64_t narrow = std::min(shape.rows, shape.columns);
      square = std::max(square, narrow * narrow);
      matrix = std::max(matrix, shape.rows * shape.columns);
    }
    if (matrix == 0) return;
    const auto take = [&](std::int64_t bytes, const char* name) {
      return device.allocate(bytes, MemoryCategory::workspace, name);
    };
    squares_ = take(static_cast<std::int64_t>(sizeof(Accumulator)), "squares of a matrix");
    gram_ = take(4 * square, "Gram matrix");
    polynomial_ = take(4 * square, "polynomial of the Gram matrix");
    product_ = take(4 * matrix, "product of a matrix");
  }

  void direction(Device& device, const OptimizerPiece& piece, TensorView direction,
                 const OptimizerStep& step) override {
    const double momentum = step.scheduled.momentum.value_or(settings_.momentum);
    device.run(Stream::compute, MuonDirection{.momentum = piece.moments[0],
                                              .direction = direction,
                                              .gradient = piece.gradient,
                                              .factor = step.factor,
                                              .one_minus_beta = static_cast<float>(1.0 - momentum),
                                              .nesterov = settings_.nesterov,
                                              .decision = step.decision});
  }

  void orthogonalize(Device& device, TensorView matrix, const MatrixShape& shape) override {
    const std::int64_t rows = shape.rows;
    const std::int64_t columns = shape.columns;
    // The Gram matrix of the shorter side: of a tall X it is X^T X, and X comes first in the products.
    const bool tall = rows > columns;
    const std::int64_t narrow = std::min(rows, columns);
    const std::int64_t wide = std::max(rows, columns);
    const TensorView gram{gram_.data(), narrow * narrow, DType::f32};
    const TensorView polynomial{polynomial_.data(), narrow * narrow, DType::f32};
    const TensorView product{product_.data(), rows * columns, DType::f32};
    const auto run = [&](const Operation& operation) { device.run(Stream::compute, operation); };
    // out[m, n] = a b, of whole matrices.
    const auto multiply = [&](TensorView a, TensorView b, TensorView out, std::int64_t m, std::int64_t n,
                              std::int64_t k, bool transpose_a = false, bool transpose_b = false) {
      run(MatMul{.a = a,
                 .b = b,
                 .out = out,
                 .m = m,
                 .n = n,
                 .k = k,
                 .lda = transpose_a ? m : k,
                 .ldb = transpose_b ? k : n,
                 .ldc = n,
                 .transpose_a = transpose_a,
                 .transpose_b = transpose_b});
    };

    run(Fill{.out = {squares_.data(), squares_.bytes() / 4, DType::f32}, .value = 0.0F});
    run(SumSquares{.in = matrix, .out = squares_.as<Accumulator>()});
    run(DivideByNorm{.values = matrix, .squares = squares_.as<Accumulator>(), .epsilon = 1e-7F});
    for (int round = 0; round < newton_schulz_rounds; ++round) {
      multiply(matrix, matrix, gram, narrow, narrow, wide, tall, !tall);
      multiply(gram, gram, polynomial, narrow, narrow, narrow);
      run(Combine{.a = gram, .b = polynomial, .out = polynomial, .alpha = newton_schulz_b, .beta = newton_schulz_c});
      multiply(tall ? matrix : polynomial, tall ? polynomial : matrix, product, rows, columns, narrow);
      run(Combine{.a = matrix, .b = product, .out = matrix, .alpha = newton_schulz_a, .beta = 1.0F});
    }
  }

  // Wide steps of tall matrices: with singular values of 1, outputs would otherwise grow with the inputs alone.
  void apply(Device& device, const OptimizerPiece& piece, ConstTensorView direction, const MatrixShape& shape,
             const OptimizerStep& step) override {
    const double ratio = static_cast<double>(shape.rows) / static_cast<double>(shape.columns);
    device.run(Stream::compute,
               MuonUpdate{.parameter = piece.master,
                          .published = piece.published,
                          .direction = direction,
                          .learning_rate = static_cast<float>(step.scheduled.learning_rate * settings_.matrix_rate),
                          .scale = static_cast<float>(std::sqrt(std::max(1.0, ratio))),
                          .weight_decay = piece.decay ? static_cast<float>(settings_.weight_decay) : 0.0F,
                          .decision = step.decision});
  }

 private:
  OptimizerSettings settings_;
  Buffer squares_;            // an Accumulator
  Buffer gram_, polynomial_;  // [narrow, narrow] of the largest
  Buffer product_;            // of the largest matrix
};

OptimizerSettings settings_of_adam(const OptimizerSettings& muon) {
  OptimizerSettings adam = muon;
  adam.type = "Adam";  // decoupled_decay as it is
  adam.bias_correction = true;
  return adam;
}

class Muon final : public Optimizer {
 public:
  explicit Muon(const OptimizerSettings& settings)
      : rule_(settings), others_(make_optimizer(settings_of_adam(settings))), rate_of_others_(settings.other_rate) {}

  // A matrix keeps the first: its momentum is a running average, as Adam's is.
  std::vector<std::string> moment_names() const override { return others_->moment_names(); }
  std::vector<float> initial_moments() const override { return others_->initial_moments(); }

  MatrixRule* matrix_rule() override { return &rule_; }

  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    OptimizerStep scaled = step;
    scaled.scheduled.learning_rate *= rate_of_others_;
    others_->apply(device, pieces, scaled);
  }

 private:
  MuonRule rule_;
  std::unique_ptr<Optimizer> others_;
  double rate_of_others_;
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(const OptimizerSettings& settings) { return std::make_unique<Muon>(settings); }

}  // namespace zt
