// The weights of a model whole in one process, in the formats that training computes with; neither gradients nor
// optimizer states.
#pragma once

#include <functional>

#include "checkpoint/native.h"
#include "checkpoint/weight_source.h"
#include "core/precision.h"
#include "device/device.h"
#include "model/parameter_access.h"
#include "zero/layout.h"

namespace zt {

class InferenceWeights final : public ParameterAccess {
 public:
  InferenceWeights(Device& device, const std::vector<UnitSpec>& units, const Precision& precision);

  // Of a checkpoint of any number of ranks, stage and precision, whose checksums are compared. RunError where it is
  // damaged, UserError where it holds another model.
  void load(const NativeCheckpoint& checkpoint);
  // Of any other source, whose checksums the caller has compared. UserError where it holds another model or a value
  // that is not finite, RunError where it cannot be read.
  void load(const WeightSource& source);

  void begin(Pass /*pass*/) override {}
  void acquire(int /*unit*/) override {}
  ConstTensorView parameter(int unit, int tensor) const override;
  void release(int /*unit*/) override {}
  GradientView gradient(int unit, int tensor) override;
  void gradients_ready(int unit) override;

 private:
  TensorView view(const TensorPlace& place) const;
  // `read`: elements [first, first + count) of a tensor as fp32.
  using ReadTensor = std::function<void(const TensorPlace& place, std::int64_t first, std::int64_t count, float* out)>;
  void fill(const ReadTensor& read);

  Device& device_;
  Layout layout_;
  Arrangement arrangement_;
  Buffer buffer_;
};

}  // namespace zt
