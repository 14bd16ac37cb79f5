#include "optim/optimizer.h"

#include <cmath>

#include "core/errors.h"

namespace zt {

namespace {

class ElementwiseOptimizer : public Optimizer {
 public:
  explicit ElementwiseOptimizer(const OptimizerSettings& settings) : settings_(settings) {}
  void statistics(Device& /*device*/, std::span<const OptimizerPiece> /*pieces*/,
                  const OptimizerStep& /*step*/) override {}

 protected:
  float decay(const OptimizerPiece& piece) const {
    return piece.decay ? static_cast<float>(settings_.weight_decay) : 0.0F;
  }
  OptimizerSettings settings_;
};

class Adam final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;
  std::vector<std::string> moment_names() const override {
    if (settings_.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    return {"exp_avg", "exp_avg_sq"};
  }
  std::vector<float> initial_moments() const override {
    return std::vector<float>(settings_.amsgrad ? 3 : 2, 0.0F);  // mean, mean of squares, the latter's maximum
  }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double rate = step.scheduled.learning_rate;
    const double beta1 = step.scheduled.momentum.value_or(settings_.beta1);
    const double beta2 = step.scheduled.beta2.value_or(settings_.beta2);
    // Of the betas of this step, also where a schedule has changed them: so PyTorch computes it.
    const auto correction = [&](double beta) {
      return settings_.bias_correction ? 1.0 - std::pow(beta, static_cast<double>(step.number)) : 1.0;
    };
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute,
                 AdamUpdate{.parameter = piece.master,
                            .first_moment = piece.moments[0],
                            .second_moment = piece.moments[1],
                            .largest_second_moment = settings_.amsgrad ? piece.moments[2] : TensorView{},
                            .gradient = piece.gradient,
                            .published = piece.published,
                            .factor = step.factor,
                            .learning_rate = static_cast<float>(rate),
                            .step_size = static_cast<float>(rate / correction(beta1)),
                            .bias_correction2_sqrt = static_cast<float>(std::sqrt(correction(beta2))),
                            .beta1 = static_cast<float>(beta1),
                            .beta2 = static_cast<float>(beta2),
                            .one_minus_beta1 = static_cast<float>(1.0 - beta1),
                            .one_minus_beta2 = static_cast<float>(1.0 - beta2),
                            .epsilon = static_cast<float>(settings_.epsilon),
                            .weight_decay = decay(piece),
                            .decoupled = settings_.decoupled_decay,
                            .decision = step.decision});
    }
  }
};

class Sgd final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;
  std::vector<std::string> moment_names() const override {
    if (settings_.momentum == 0.0) return {};
    return {"momentum_buffer"};
  }
  std::vector<float> initial_moments() const override {
    return std::vector<float>(settings_.momentum != 0.0 ? 1 : 0, 0.0F);
  }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double momentum = step.scheduled.momentum.value_or(settings_.momentum);
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute, SgdUpdate{.parameter = piece.master,
                                            .momentum_buffer = piece.moments[0],
                                            .gradient = piece.gradient,
                                            .published = piece.published,
                                            .factor = step.factor,
                                            .learning_rate = static_cast<float>(step.scheduled.learning_rate),
                                            .momentum = static_cast<float>(momentum),
                                            .dampening = static_cast<float>(settings_.dampening),
                                            .weight_decay = decay(piece),
                                            .nesterov = settings_.nesterov,
                                            .first_step = step.number == 1,
                                            .decision = step.decision});
    }
  }
};

class Adagrad final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;
  std::vector<std::string> moment_names() const override { return {"sum"}; }
  std::vector<float> initial_moments() const override {
    return {static_cast<float>(settings_.initial_accumulator_value)};
  }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double slowed = 1.0 + static_cast<double>(step.number - 1) * settings_.lr_decay;
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute,
                 AdagradUpdate{.parameter = piece.master,
                               .sum_of_squares = piece.moments[0],
                               .gradient = piece.gradient,
                               .published = piece.published,
                               .factor = step.factor,
                               .learning_rate = static_cast<float>(step.scheduled.learning_rate / slowed),
                               .weight_decay = decay(piece),
                               .epsilon = static_cast<float>(settings_.epsilon),
                               .decision = step.decision});
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings) {
  if (settings.type == "Adam" || settings.type == "AdamW") return std::make_unique<Adam>(settings);
  if (settings.type == "SGD") return std::make_unique<Sgd>(settings);
  if (settings.type == "Adagrad") return std::make_unique<Adagrad>(settings);
  throw UserError("optimizer.type \"" + settings.type + "\": use \"AdamW\", \"Adam\", \"SGD\" or \"Adagrad\"");
}

}  // namespace zt
