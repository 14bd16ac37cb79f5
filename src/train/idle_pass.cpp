#include "train/idle_pass.h"

#include <vector>

namespace zt {

namespace {

// Gradients of a unit are reduced once its part of the backward pass is over; those of a unit that the pass uses at
// both ends, or does not read at all (the embedding), at the very end.
void give_nothing(Device& device, Engine& engine, int unit) {
  const UnitLayout& layout = engine.context().layout.unit(unit);
  for (int tensor = 0; tensor < static_cast<int>(layout.tensors.size()); ++tensor) {
    const GradientView gradient = engine.gradient(unit, tensor);
    if (gradient.view) device.run(Stream::compute, Fill{.out = gradient.view, .value = -0.0F});
  }
  engine.gradients_ready(unit);
}

}  // namespace

void run_idle_micro_step(Device& device, Engine& engine, const Model& model) {
  engine.begin(Pass::training_forward);
  for (const int unit : model.order(Pass::training_forward)) {
    engine.acquire(unit);
    engine.release(unit);
  }
  engine.begin(Pass::backward);
  const std::vector<UnitSpec>& units = model.units();
  std::vector<bool> left(units.size());
  for (std::size_t unit = 0; unit < units.size(); ++unit) left[unit] = trains(units[unit]);
  for (const int unit : model.order(Pass::backward)) {
    const auto index = static_cast<std::size_t>(unit);
    engine.acquire(unit);
    engine.release(unit);
    if (!left[index] || units[index].spans_pass) continue;
    give_nothing(device, engine, unit);
    left[index] = false;
  }
  for (std::size_t unit = units.size(); unit-- > 0;) {
    if (left[unit]) give_nothing(device, engine, static_cast<int>(unit));
  }
}

}  // namespace zt
