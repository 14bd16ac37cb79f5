// Optimizers over pieces of tensors. A step has two phases: statistics (sums over whole tensors, agreed between
// ranks, for the optimizers that need them: LAMB) and apply, piece by piece. Between the two come the matrices of
// hidden layers that an optimizer needs whole (Muon: MatrixRule).
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
  bool whole = false;       // of a matrix that the optimizer's MatrixRule updates
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

struct MatrixShape {
  std::int64_t rows = 0, columns = 0;  // outputs, inputs
};

// What an optimizer does with the trained matrices of hidden layers if it needs each of them whole. Every step, of each
// matrix: directions() of the pieces that a rank updates; the directions of all pieces, brought together in order, to
// one rank (any one: it finds the same bits), which calls orthogonalize(); apply(), with what came out, of the pieces
// again.
class MatrixRule {
 public:
  virtual ~MatrixRule() = default;
  // How many of the optimizer's moments such a matrix keeps: the first ones.
  virtual int moments() const = 0;
  // Once, before the first step, with the shapes of all that will be orthogonalized: memory for the work.
  virtual void prepare(Device& device, std::span<const MatrixShape> shapes) = 0;
  // Moves the piece's moments; direction: fp32, as many elements as the piece.
  virtual void direction(Device& device, const OptimizerPiece& piece, TensorView direction,
                         const OptimizerStep& step) = 0;
  virtual void orthogonalize(Device& device, TensorView matrix, const MatrixShape& shape) = 0;  // fp32, in place
  virtual void apply(Device& device, const OptimizerPiece& piece, ConstTensorView direction, const MatrixShape& shape,
                     const OptimizerStep& step) = 0;
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

  // Null: all is updated piece by piece.
  virtual MatrixRule* matrix_rule() { return nullptr; }
  const MatrixRule* matrix_rule() const { return const_cast<Optimizer*>(this)->matrix_rule(); }

  // Of pieces of matrices that matrix_rule() updates there are none.
  virtual void apply(Device& device, std::span<const OptimizerPiece> pieces, const OptimizerStep& step) = 0;

  // For the caller's pieces: memory that is taken in the first step and kept.
  std::vector<OptimizerPiece>& piece_memory() { return pieces_; }

 private:
  std::vector<OptimizerPiece> pieces_;
};

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSettings& settings);

}  // namespace zt
