// A model: units of parameters, a forward and a backward pass written by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/precision.h"
#include "device/device.h"
#include "model/parameter_access.h"

namespace zt {

// One micro-batch in the device's memory.
struct DeviceBatch {
  std::int64_t rows = 0;                  // sequences or rows
  std::int64_t first_sample = 0;          // position of row 0 in the global batch of the step
  const std::int32_t* tokens = nullptr;   // gpt: [rows, T]
  const float* features = nullptr;        // mlp: [rows, inputs]
  const std::int32_t* targets = nullptr;  // gpt: [rows, T]; mlp with cross_entropy: [rows]; -1: not counted
  const float* target_values = nullptr;   // mlp with mse: [rows, outputs]
  const std::int32_t* valid = nullptr;    // mlp with mse: [rows], 0: not counted
};

// What a pass needs to know of the step it belongs to.
struct StepInfo {
  std::uint64_t seed = 0;
  std::int64_t step = 0;        // attempted steps so far, from 1: dropout draws by it
  float gradient_scale = 1.0F;  // the gradient of a row's loss: S * J / V (DESIGN: one training step)
};

// What the loss left in the device's memory for the micro-batch.
struct LossView {
  const float* losses = nullptr;          // [count], in nats or squared error; 0 where not counted
  const std::int32_t* correct = nullptr;  // [count] or null: predictions that hit
  std::int64_t count = 0;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::vector<UnitSpec>& units() const = 0;
  virtual const std::vector<int>& order(Pass pass) const = 0;

  // Training: forward computes what the loss is made of and keeps what backward needs; backward computes the loss and
  // all gradients. The loss belongs to backward because scores and their gradients may be made part by part, so that
  // they are never whole in memory.
  virtual void forward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch, const StepInfo& step) = 0;
  virtual LossView backward(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                            const StepInfo& step) = 0;
  // Forward with loss, without dropout.
  virtual LossView evaluate(Device& device, ParameterAccess& parameters, const DeviceBatch& batch,
                            const StepInfo& step) = 0;

  // Scores of every output after the last of `length` tokens (gpt only): [vocabulary], fp32, in device memory.
  virtual const float* next_token_logits(Device& device, ParameterAccess& parameters, const std::int32_t* tokens,
                                         std::int64_t length) = 0;

  // Which activation an address belongs to ("h.3.qkv"), or "" if none of this model's.
  virtual std::string activation_at(const void* address) const = 0;

  // Multiplications and additions of matrix products per row of a batch, forward and backward, by the rule of
  // docs: 6 per parameter of matrix products and token, attention counted causal, nothing for recomputation.
  virtual double flops_per_row() const = 0;

  // Decoding step by step (gpt only): runs `count` tokens of one sequence at the positions from `first` on, which stand
  // behind what passes since position 0 have run (decode, or next_token_logits), and keeps their keys and values.
  // Scores after the last of them, as next_token_logits gives them but for the order of sums. Not where keeps_keys() is
  // false.
  virtual const float* decode(Device& device, ParameterAccess& parameters, const std::int32_t* tokens,
                              std::int64_t first, std::int64_t count) = 0;
  // False for rows, and where several blocks share the memory of their keys, as they are computed again.
  virtual bool keeps_keys() const = 0;
};

// What a model is made for. With `inference` it has the memory for evaluate(), next_token_logits() and decode() alone.
enum class ModelUse : std::uint8_t { training, inference };

// Buffers for up to `rows` rows (a micro-batch) are allocated on the device. `vocabulary`, `settings` resolved.
std::unique_ptr<Model> make_model(const Settings& settings, const Precision& precision, Device& device,
                                  std::int64_t rows, ModelUse use = ModelUse::training);

std::int64_t parameter_count(const std::vector<UnitSpec>& units);

}  // namespace zt
