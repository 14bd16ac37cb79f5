// A multi-layer perceptron: linear layers with an activation between them, one unit a layer.
#pragma once

#include "model/layers.h"
#include "model/model.h"

namespace zt {

std::vector<UnitSpec> mlp_units(const MlpSettings& settings);

class Mlp final : public Model {
 public:
  Mlp(const MlpSettings& settings, const std::vector<std::string>& freeze, const Precision& precision, Device& device,
      std::int64_t rows, ModelUse use = ModelUse::training);

  const std::vector<UnitSpec>& units() const override { return units_; }
  const std::vector<int>& order(Pass pass) const override;
  void forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) override;
  LossView backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                    const StepInfo& step) override;
  LossView evaluate(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                    const StepInfo& step) override;
  const float* next_token_logits(Device& device, ParameterAccess& parameters, const std::int32_t* tokens,
                                 std::int64_t length) override;
  const float* decode(Device& device, ParameterAccess& parameters, const std::int32_t* tokens, std::int64_t first,
                      std::int64_t count) override;
  bool keeps_keys() const override { return false; }
  std::string activation_at(const void* address) const override { return buffers_.name_at(address); }
  double flops_per_row() const override;

 private:
  std::size_t layers() const { return settings_.layers.size() - 1; }
  Linear shape(std::size_t layer, std::int64_t rows) const {
    return {rows, settings_.layers[layer], settings_.layers[layer + 1]};
  }

  void layers_forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch);
  // Of the predictions; with their gradient, if it is wanted.
  LossView loss(Device& device, const DeviceBatch& batch, const StepInfo& step, TensorView d_prediction);

  // The layer's weights in the format that products read.
  ConstTensorView weight(Device& device, ParameterAccess& parameters, std::size_t layer) const;

  MlpSettings settings_;
  Activation activation_;
  bool cross_entropy_;
  std::vector<UnitSpec> units_;
  std::vector<int> forward_order_, backward_order_;
  std::size_t first_trained_ = 0;  // no layer below it has gradients

  NamedBuffers buffers_;
  TensorView input_;                 // [rows, inputs], rounded as products read it
  std::vector<TensorView> linear_;   // [rows, outputs of layer l]: before the activation; the last: predictions
  std::vector<TensorView> active_;   // [rows, outputs of layer l]: after it (all but the last layer)
  TensorView gradient_[2];           // [rows, widest]: used in turn going backward
  TensorView cast_weight_;           // of the largest layer, where products read another format than parameters have
  float* losses_ = nullptr;          // [rows]
  std::int32_t* correct_ = nullptr;  // [rows]
};

}  // namespace zt
