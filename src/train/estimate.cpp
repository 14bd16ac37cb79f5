#include "train/estimate.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "zero/engine.h"

namespace zt {

namespace {

std::int64_t activations_of(const Plan& plan) {
  return plan.memory.at(static_cast<std::size_t>(MemoryCategory::activations));
}

// value * size / base, rounded, at least 1.
std::int64_t in_proportion(std::int64_t value, std::int64_t size, std::int64_t base) {
  const double exact = static_cast<double>(value) * static_cast<double>(size) / static_cast<double>(base);
  return std::max<std::int64_t>(1, std::llround(exact));
}

std::int64_t widest_hidden(const MlpSettings& mlp) {
  return mlp.layers.size() < 3 ? 0 : *std::max_element(mlp.layers.begin() + 1, mlp.layers.end() - 1);
}

struct PaperBytes {
  double parameters, gradients, optimizer;
};

PaperBytes paper_bytes(int stage, double ranks) {
  return {2.0 / (stage >= 3 ? ranks : 1.0), 2.0 / (stage >= 2 ? ranks : 1.0), 12.0 / (stage >= 1 ? ranks : 1.0)};
}

}  // namespace

ActivationBytes activation_bytes(const Settings& settings, const Plan& plan, const PlanMaker& make) {
  const auto with = [&](std::int64_t every) {
    if (settings.model.type != "gpt" || settings.checkpoint_every == every) return activations_of(plan);
    Settings other = settings;
    other.checkpoint_every = every;
    return activations_of(make(other, plan.ranks));
  };
  return {with(0), with(1)};
}

ModelSettings scaled_model(const ModelSettings& model, std::int64_t size) {
  ModelSettings scaled = model;
  if (model.type == "gpt") {
    const GptSettings& from = model.gpt;
    GptSettings& gpt = scaled.gpt;
    gpt.n_head = size;
    gpt.n_embd = from.n_embd / from.n_head * size;
    gpt.n_layer = in_proportion(from.n_layer, size, from.n_head);
    gpt.n_inner = from.n_inner == 0 ? 0 : in_proportion(from.n_inner, size, from.n_head);
    return scaled;
  }
  const std::int64_t widest = widest_hidden(model.mlp);
  std::vector<std::int64_t>& layers = scaled.mlp.layers;
  for (std::size_t layer = 1; layer + 1 < layers.size(); ++layer)
    layers[layer] = in_proportion(layers[layer], size, widest);
  return scaled;
}

std::optional<LargestModel> largest_model(const Settings& settings, int ranks, std::int64_t memory,
                                          const PlanMaker& make) {
  if (settings.model.type != "gpt" && widest_hidden(settings.model.mlp) == 0) return std::nullopt;
  std::optional<LargestModel> best;
  const auto fits = [&](std::int64_t size) {
    Settings scaled = settings;
    scaled.model = scaled_model(settings.model, size);
    scaled.model.pretrained.clear();
    try {
      refuse_absurd_sizes(scaled);
    } catch (const UserError&) {
      return false;
    }
    const Plan plan = make(scaled, ranks);
    if (plan.total() > memory) return false;
    best = LargestModel{scaled.model, plan.parameters, plan.total()};
    return true;
  };
  // From the model as it is up or down in powers of two, then halfway between the last that fits and the first that
  // does not.
  std::int64_t size = settings.model.type == "gpt" ? settings.model.gpt.n_head : widest_hidden(settings.model.mlp);
  std::int64_t least_too_large = 0;
  if (fits(size)) {
    while (fits(2 * size)) size *= 2;
    least_too_large = 2 * size;
  } else {
    least_too_large = size;
    while (size > 1 && !fits(size / 2)) least_too_large = size /= 2;
    if (size == 1) return std::nullopt;
    size /= 2;
  }
  while (least_too_large - size > 1) {
    const std::int64_t middle = size + (least_too_large - size) / 2;
    (fits(middle) ? size : least_too_large) = middle;
  }
  return best;
}

double paper_bytes_per_parameter(int stage, int ranks) {
  const PaperBytes bytes = paper_bytes(stage, ranks);
  return bytes.parameters + bytes.gradients + bytes.optimizer;
}

Plan paper_plan(double parameters, int stage, int ranks) {
  const PaperBytes bytes = paper_bytes(stage, ranks);
  Plan plan;
  plan.ranks = ranks;
  plan.stage = stage;
  plan.parameters = std::llround(parameters);
  const auto set = [&](MemoryCategory category, double of_parameter) {
    plan.memory.at(static_cast<std::size_t>(category)) = std::llround(of_parameter * parameters);
  };
  set(MemoryCategory::parameters, bytes.parameters);
  set(MemoryCategory::gradients, bytes.gradients);
  set(MemoryCategory::optimizer, bytes.optimizer);
  plan.formula_bytes = paper_bytes_per_parameter(stage, ranks);
  plan.paper_elements = paper_elements_per_parameter(stage, ranks, 1);
  plan.elements_applied = std::llround(plan.paper_elements * parameters);
  return plan;
}

}  // namespace zt
