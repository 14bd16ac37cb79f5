// Optimizers over pieces of tensors. A step has two phases: statistics (sums over whole tensors, agreed between
// ranks, for the optimizers that need them: LAMB) and apply, piece by piece.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "device/device.h"
#include "optim/schedule.h"

namespace zt {

// A run of elements of one tensor with all that belongs to them.
struct OptimizerPiece {
  int tensor = 0;           // index in the layout
  std::int64_t offset = 0;  // of the first element within the tensor
  bool decay = true;        // weight decay applies
  TensorView master;        // what is updated
  ConstTensorView gradient;
  TensorView published;  // the 16-bit parameters computed with; empty if the master is what is computed with
  std::array<TensorView, 3> moments;
};

struct OptimizerStep {
  std::int64_t number = 1;                   // applied steps, this one included
  ScheduledValues scheduled;                 // learning rate, and what else the schedule sets
  float factor = 1.0F;                       // multiplies gradients: unscaling and clipping
  const UpdateDecision* decision = nullptr;  // in the device's memory: decides instead (device/operations.h)
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // The moments kept per parameter (averages and sums of past gradients): the value that each starts from.
  virtual std::vector<float> initial_moments() const = 0;
  // Their names, as PyTorch has them: files carry them.
  virtual std::vector<std::string> moment_names() const = 0;
  int moments() const { return static_cast<int>(initial_moments().size()); }

  // For optimizers whose steps depend on sums over whole tensors; the others leave this as it is. Once, before the
  // first step: memory for the trained tensors, by their index in the layout, in pieces of up to so many elements.
  virtual void prepare(Device& device, std::span<const int> tensors, std::int64_t longest_piece);
  // Integers in the device's memory; empty: there are none. Every step the caller clears them, calls statistics() with
  // all pieces, adds the integers up over the ranks between which the tensors are cut, and calls use_statistics(); then
  // come the calls of apply().
  virtual std::span<std::int64_t> sums() { return {}; }
  virtual void statistics(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step);
  virtual void use_statistics(Device& device);

  virtual void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) = 0;

  // For the caller's pieces: memory that is taken in the first step and kept.
  std::vector<OptimizerPiece>& piece_memory() { return pieces_; }

 private:
  std::vector<OptimizerPiece> pieces_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings);

}  // namespace zt
