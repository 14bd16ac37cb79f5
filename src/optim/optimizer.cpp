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
  int moments() const override { return 2; }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double correction1 = 1.0 - std::pow(settings_.beta1, static_cast<double>(step.number));
    const double correction2 = 1.0 - std::pow(settings_.beta2, static_cast<double>(step.number));
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute, AdamUpdate{.parameter = piece.master,
                                             .first_moment = piece.moments[0],
                                             .second_moment = piece.moments[1],
                                             .gradient = piece.gradient,
                                             .published = piece.published,
                                             .factor = step.factor,
                                             .learning_rate = static_cast<float>(step.learning_rate),
                                             .step_size = static_cast<float>(step.learning_rate / correction1),
                                             .bias_correction2_sqrt = static_cast<float>(std::sqrt(correction2)),
                                             .beta1 = static_cast<float>(settings_.beta1),
                                             .beta2 = static_cast<float>(settings_.beta2),
                                             .one_minus_beta1 = static_cast<float>(1.0 - settings_.beta1),
                                             .one_minus_beta2 = static_cast<float>(1.0 - settings_.beta2),
                                             .epsilon = static_cast<float>(settings_.epsilon),
                                             .weight_decay = decay(piece),
                                             .decoupled = settings_.decoupled_decay});
    }
  }
};

class Sgd final : public ElementwiseOptimizer {
 public:
  using ElementwiseOptimizer::ElementwiseOptimizer;
  int moments() const override { return settings_.momentum != 0.0 ? 1 : 0; }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute, SgdUpdate{.parameter = piece.master,
                                            .momentum_buffer = piece.moments[0],
                                            .gradient = piece.gradient,
                                            .published = piece.published,
                                            .factor = step.factor,
                                            .learning_rate = static_cast<float>(step.learning_rate),
                                            .momentum = static_cast<float>(settings_.momentum),
                                            .dampening = static_cast<float>(settings_.dampening),
                                            .weight_decay = decay(piece),
                                            .nesterov = settings_.nesterov,
                                            .first_step = step.number == 1});
    }
  }
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings) {
  if (settings.type == "Adam" || settings.type == "AdamW") return std::make_unique<Adam>(settings);
  if (settings.type == "SGD") return std::make_unique<Sgd>(settings);
  throw UserError("optimizer.type \"" + settings.type + "\": use \"AdamW\", \"Adam\" or \"SGD\"");
}

}  // namespace zt
