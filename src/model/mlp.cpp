#include "model/mlp.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/errors.h"
#include "model/segments.h"

namespace zt {

std::vector<UnitSpec> mlp_units(const MlpSettings& settings) {
  std::vector<UnitSpec> units;
  for (std::size_t layer = 0; layer + 1 < settings.layers.size(); ++layer) {
    const std::int64_t inputs = settings.layers[layer];
    const std::int64_t outputs = settings.layers[layer + 1];
    const std::string prefix = "layers." + std::to_string(layer);
    const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(inputs)));
    UnitSpec unit{
        prefix,
        {{prefix + ".weight", {outputs, inputs}, Segment::matrices, Distribution::uniform, bound, TensorKind::matrix}}};
    unit.tensors.back().hidden = true;
    if (settings.bias) {
      unit.tensors.push_back(
          {prefix + ".bias", {outputs}, Segment::vectors, Distribution::uniform, bound, TensorKind::bias});
    }
    units.push_back(std::move(unit));
  }
  return units;
}

Mlp::Mlp(const MlpSettings& settings, const std::vector<std::string>& freeze, const Precision& precision,
         Device& device, std::int64_t rows, ModelUse use)
    : settings_(settings),
      activation_(activation_from_name(settings.activation)),
      cross_entropy_(settings.loss == "cross_entropy"),
      units_(mlp_units(settings)) {
  assign_segments(units_, precision, freeze);
  while (!trains(units_[first_trained_])) ++first_trained_;
  forward_order_.resize(layers());
  std::iota(forward_order_.begin(), forward_order_.end(), 0);
  // The input of the first layer with gradients needs none.
  backward_order_.assign(forward_order_.rbegin(),
                         forward_order_.rend() - 1 - static_cast<std::ptrdiff_t>(first_trained_));

  const DType dtype = precision.compute;
  const auto activations = MemoryCategory::activations;
  input_ = buffers_.tensor(device, activations, "input", rows * settings_.layers.front(), dtype);
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    const std::string prefix = "layers." + std::to_string(layer);
    const std::int64_t outputs = settings_.layers[layer + 1];
    linear_.push_back(buffers_.tensor(device, activations, prefix + ".output", rows * outputs, dtype));
    const bool last = layer + 1 == layers();
    if (last) continue;
    active_.push_back(activation_ == Activation::identity
                          ? linear_.back()
                          : buffers_.tensor(device, activations, prefix + ".activation", rows * outputs, dtype));
  }
  if (use == ModelUse::training) {
    const std::int64_t widest = *std::max_element(settings_.layers.begin() + 1, settings_.layers.end());
    gradient_[0] = buffers_.tensor(device, activations, "gradient.0", rows * widest, dtype);
    gradient_[1] = buffers_.tensor(device, activations, "gradient.1", rows * widest, dtype);
  }
  losses_ = buffers_.floats(device, activations, "losses", rows);
  if (precision.casts_operands()) {
    std::int64_t largest = 0;
    for (const UnitSpec& unit : units_) largest = std::max(largest, unit.tensors.front().count());
    cast_weight_ = buffers_.tensor(device, activations, "weights cast for products", largest, dtype);
  }
  if (cross_entropy_) correct_ = buffers_.integers(device, activations, "correct", rows);
}

const std::vector<int>& Mlp::order(Pass pass) const {
  return pass == Pass::backward ? backward_order_ : forward_order_;
}

ConstTensorView Mlp::weight(Device& device, ParameterAccess& parameters, std::size_t layer) const {
  return as_operand(device, parameters.parameter(static_cast<int>(layer), 0), cast_weight_);
}

void Mlp::forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& /*step*/) {
  parameters.begin(Pass::training_forward);
  layers_forward(device, parameters, batch);
}

LossView Mlp::evaluate(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  parameters.begin(Pass::inference);
  layers_forward(device, parameters, batch);
  return loss(device, batch, step, {});
}

void Mlp::layers_forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch) {
  const std::int64_t inputs = settings_.layers.front();
  const ConstTensorView features(batch.features, batch.rows * inputs, DType::f32);
  device.run(Stream::compute, Cast{.in = features, .out = input_.part(0, batch.rows * inputs)});

  ConstTensorView x = input_;
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    const int unit = static_cast<int>(layer);
    const Linear linear = shape(layer, batch.rows);
    const bool activates = layer + 1 < layers() && activation_ != Activation::identity;
    parameters.acquire(unit);
    linear_forward(device, linear, x, weight(device, parameters, layer),
                   settings_.bias ? parameters.parameter(unit, 1) : ConstTensorView{}, linear_[layer], activation_,
                   activates ? active_[layer] : TensorView{});
    parameters.release(unit);
    if (layer + 1 < layers()) x = active_[layer];
  }
}

LossView Mlp::loss(Device& device, const DeviceBatch& batch, const StepInfo& step, TensorView d_prediction) {
  const std::int64_t outputs = settings_.layers.back();
  if (cross_entropy_) {
    device.run(Stream::compute, CrossEntropy{.logits = linear_.back(),
                                             .targets = batch.targets,
                                             .losses = losses_,
                                             .d_logits = d_prediction,
                                             .correct = correct_,
                                             .rows = batch.rows,
                                             .vocabulary = outputs,
                                             .stride = outputs,
                                             .scale = step.gradient_scale});
  } else {
    device.run(Stream::compute, SquaredError{.prediction = linear_.back(),
                                             .targets = batch.target_values,
                                             .valid = batch.valid,
                                             .losses = losses_,
                                             .d_prediction = d_prediction,
                                             .rows = batch.rows,
                                             .columns = outputs,
                                             .scale = step.gradient_scale});
  }
  return {losses_, correct_, batch.rows};
}

LossView Mlp::backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) {
  parameters.begin(Pass::backward);
  const LossView result = loss(device, batch, step, gradient_[0]);
  TensorView d_y = gradient_[0];
  TensorView d_x = gradient_[1];
  for (std::size_t layer = layers(); layer-- > first_trained_;) {
    const int unit = static_cast<int>(layer);
    const Linear linear = shape(layer, batch.rows);
    const ConstTensorView x = layer == 0 ? ConstTensorView(input_) : ConstTensorView(active_[layer - 1]);
    const bool goes_on = layer > first_trained_;
    if (goes_on) {
      parameters.acquire(unit);
      linear_backward_input(device, linear, weight(device, parameters, layer), d_y, d_x, activation_,
                            activation_ == Activation::identity ? ConstTensorView{} : linear_[layer - 1]);
      parameters.release(unit);
    }
    linear_backward_weight(device, linear, x, d_y, parameters.gradient(unit, 0));
    if (settings_.bias) linear_backward_bias(device, linear, d_y, parameters.gradient(unit, 1));
    parameters.gradients_ready(unit);
    std::swap(d_y, d_x);
  }
  return result;
}

const float* Mlp::next_token_logits(Device& /*device*/, ParameterAccess& /*parameters*/, const std::int32_t* /*tokens*/,
                                    std::int64_t /*length*/) {
  throw UserError("model.type \"mlp\" generates no text: use a gpt model");
}

const float* Mlp::decode(Device& /*device*/, ParameterAccess& /*parameters*/, const std::int32_t* /*tokens*/,
                         std::int64_t /*first*/, std::int64_t /*count*/) {
  throw UserError("model.type \"mlp\" generates no text: use a gpt model");
}

double Mlp::flops_per_row() const {
  double flops = 0.0;
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    flops += static_cast<double>(settings_.layers[layer]) * static_cast<double>(settings_.layers[layer + 1]) *
             product_flops_per_parameter(units_[layer].tensors.front(), layer >= first_trained_);
  }
  return flops;
}

}  // namespace zt
