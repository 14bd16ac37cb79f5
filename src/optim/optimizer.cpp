#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "optim/muon.h"

namespace zt {

void Optimizer::prepare(Device& /*device*/, std::span<const int> /*tensors*/, std::int64_t /*longest_piece*/) {}
void Optimizer::statistics(Device& /*device*/, std::span<const OptimizerPiece> /*pieces*/,
                           const OptimizerStep& /*step*/) {}
void Optimizer::use_statistics(Device& /*device*/) {}

namespace {

class ConfiguredOptimizer : public Optimizer {
 public:
  explicit ConfiguredOptimizer(const OptimizerSettings& settings) : settings_(settings) {}

 protected:
  float decay(const OptimizerPiece& piece) const {
    return piece.decay ? static_cast<float>(settings_.weight_decay) : 0.0F;
  }
  OptimizerSettings settings_;
};

class Adam final : public ConfiguredOptimizer {
 public:
  using ConfiguredOptimizer::ConfiguredOptimizer;
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

class Sgd final : public ConfiguredOptimizer {
 public:
  using ConfiguredOptimizer::ConfiguredOptimizer;
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

class Adagrad final : public ConfiguredOptimizer {
 public:
  using ConfiguredOptimizer::ConfiguredOptimizer;
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

class Lion final : public ConfiguredOptimizer {
 public:
  using ConfiguredOptimizer::ConfiguredOptimizer;
  std::vector<std::string> moment_names() const override { return {"exp_avg"}; }
  std::vector<float> initial_moments() const override { return {0.0F}; }
  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double beta1 = step.scheduled.momentum.value_or(settings_.beta1);
    const double beta2 = step.scheduled.beta2.value_or(settings_.beta2);
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute, LionUpdate{.parameter = piece.master,
                                             .momentum = piece.moments[0],
                                             .gradient = piece.gradient,
                                             .published = piece.published,
                                             .factor = step.factor,
                                             .learning_rate = static_cast<float>(step.scheduled.learning_rate),
                                             .beta1 = static_cast<float>(beta1),
                                             .beta2 = static_cast<float>(beta2),
                                             .one_minus_beta1 = static_cast<float>(1.0 - beta1),
                                             .one_minus_beta2 = static_cast<float>(1.0 - beta2),
                                             .weight_decay = decay(piece),
                                             .decision = step.decision});
    }
  }
};

// Every tensor has a step of its own, as long as the ratio of two norms says.
class Lamb final : public ConfiguredOptimizer {
 public:
  using ConfiguredOptimizer::ConfiguredOptimizer;
  std::vector<std::string> moment_names() const override { return {"exp_avg", "exp_avg_sq"}; }
  std::vector<float> initial_moments() const override { return {0.0F, 0.0F}; }

  void prepare(Device& device, std::span<const int> tensors, std::int64_t longest_piece) override {
    for (const int tensor : tensors) {
      const auto index = static_cast<std::size_t>(tensor);
      if (index >= places_.size()) places_.resize(index + 1);
      places_[index] = count_++;
    }
    const auto take = [&](std::int64_t bytes, const char* name) {
      return device.allocate(bytes, MemoryCategory::workspace, name);
    };
    squares_ = take(2 * count_ * static_cast<std::int64_t>(sizeof(Accumulator)), "squares of tensors");
    ratios_ = take(count_ * static_cast<std::int64_t>(sizeof(float)), "trust ratios");
    direction_ = take(std::min(longest_piece, run_) * static_cast<std::int64_t>(sizeof(float)), "directions");
  }

  std::span<std::int64_t> sums() override {
    return {squares_.as<std::int64_t>(), static_cast<std::size_t>(squares_.bytes()) / sizeof(std::int64_t)};
  }

  void statistics(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    const double beta1 = step.scheduled.momentum.value_or(settings_.beta1);
    const double beta2 = step.scheduled.beta2.value_or(settings_.beta2);
    for (const OptimizerPiece& piece : pieces) {
      Accumulator* const squares = squares_.as<Accumulator>() + 2 * place_of(piece);
      for (std::int64_t first = 0; first < piece.master.count; first += run_) {
        const std::int64_t count = std::min(run_, piece.master.count - first);
        const TensorView parameter = piece.master.part(first, count);
        const TensorView direction{direction_.data(), count, DType::f32};
        device.run(Stream::compute, LambMoments{.parameter = parameter,
                                                .first_moment = piece.moments[0].part(first, count),
                                                .second_moment = piece.moments[1].part(first, count),
                                                .direction = direction,
                                                .gradient = piece.gradient.part(first, count),
                                                .rule = rule(piece, step),
                                                .factor = step.factor,
                                                .beta1 = static_cast<float>(beta1),
                                                .beta2 = static_cast<float>(beta2),
                                                .one_minus_beta1 = static_cast<float>(1.0 - beta1),
                                                .one_minus_beta2 = static_cast<float>(1.0 - beta2),
                                                .decision = step.decision});
        device.run(Stream::compute, SumSquares{.in = parameter, .out = squares});
        device.run(Stream::compute, SumSquares{.in = direction, .out = squares + 1});
      }
    }
  }

  void use_statistics(Device& device) override {
    device.run(Stream::compute, TrustRatios{.squares = squares_.as<Accumulator>(),
                                            .out = ratios_.as<float>(),
                                            .count = count_,
                                            .least = settings_.min_coeff,
                                            .most = settings_.max_coeff});
  }

  void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) override {
    for (const OptimizerPiece& piece : pieces) {
      device.run(Stream::compute, LambUpdate{.parameter = piece.master,
                                             .first_moment = piece.moments[0],
                                             .second_moment = piece.moments[1],
                                             .published = piece.published,
                                             .rule = rule(piece, step),
                                             .learning_rate = static_cast<float>(step.scheduled.learning_rate),
                                             .trust_ratio = ratios_.as<float>() + place_of(piece),
                                             .decision = step.decision});
    }
  }

 private:
  std::int64_t place_of(const OptimizerPiece& piece) const {
    return places_.at(static_cast<std::size_t>(piece.tensor));
  }
  LambDirection rule(const OptimizerPiece& piece, const OptimizerStep& step) const {
    const auto correction = [&](double beta) {
      return static_cast<float>(settings_.bias_correction ? 1.0 - std::pow(beta, static_cast<double>(step.number))
                                                          : 1.0);
    };
    return {.bias_correction1 = correction(step.scheduled.momentum.value_or(settings_.beta1)),
            .bias_correction2 = correction(step.scheduled.beta2.value_or(settings_.beta2)),
            .epsilon = static_cast<float>(settings_.epsilon),
            .weight_decay = decay(piece),
            .epsilon_inside_root = settings_.epsilon_inside_root};
  }

  // Elements whose directions are in memory at once: whole blocks of the sums of squares.
  static constexpr std::int64_t run_ = std::int64_t{1} << 20;

  std::vector<std::int64_t> places_;  // of tensors among the trained ones
  std::int64_t count_ = 0;
  Buffer squares_;    // [trained tensors, 2] accumulators: of parameters, of directions
  Buffer ratios_;     // [trained tensors]
  Buffer direction_;  // of one run
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings) {
  if (settings.type == "Adam" || settings.type == "AdamW") return std::make_unique<Adam>(settings);
  if (settings.type == "SGD") return std::make_unique<Sgd>(settings);
  if (settings.type == "Adagrad") return std::make_unique<Adagrad>(settings);
  if (settings.type == "Lion") return std::make_unique<Lion>(settings);
  if (settings.type == "Lamb") return std::make_unique<Lamb>(settings);
  if (settings.type == "Muon") return make_muon(settings);
  throw UserError("optimizer.type \"" + settings.type +
                  "\": use \"AdamW\", \"Adam\", \"SGD\", \"Adagrad\", \"Lion\", \"Lamb\" or \"Muon\"");
}

}  // namespace zt
