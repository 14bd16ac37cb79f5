// What the engines of the four ZeRO stages have in common, and what finish_step asks of them.
//
// | stage              | 0     | 1     | 2     | 3     |
// | parameters at rest | whole | whole | whole | slice |
// | gradients at rest  | whole | whole | slice | slice |
// | optimizer state    | whole | slice | slice | slice |
//
// All reduce a unit's gradient in the same way, micro-step by micro-step, onto the slice that this rank owns, in
// the order of the global micro-batches (j = k N + r): so all stages compute the same bits. In local order (stages 0
// and 1) a rank adds up its own micro-batches, and the ranks' sums are reduced, in rank order, in the last micro-step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "config/settings.h"
#include "core/precision.h"
#include "device/device.h"
#include "model/model.h"
#include "zero/layout.h"

namespace zt {

struct EngineContext {
  Device& device;
  Communicator& communicator;
  const Layout& layout;
  Precision precision;
  std::int64_t accumulation = 1;  // micro-steps of a step (A)
  ZeroSettings zero;
  AccumulationOrder order = AccumulationOrder::global;  // in effect
};

// Which parameters have new values: what training updates, or all.
enum class Changed : std::uint8_t { trained, everything };
constexpr bool concerns(Changed changed, Segment segment) {
  return changed == Changed::everything || is_trained(segment);
}

class Engine : public ParameterAccess {
 public:
  explicit Engine(EngineContext context);

  // The model whose passes will run: their orders let gathers run ahead.
  void follow(const Model& model) { model_ = &model; }

  // A step is A micro-steps, each a forward and a backward pass, then finish_step.
  virtual void begin_step() {}
  void begin_micro_step(std::int64_t index);
  void begin(Pass pass) override;
  void acquire(int unit) final;
  void release(int unit) final;
  ConstTensorView parameter(int unit, int tensor) const final;
  GradientView gradient(int unit, int tensor) final;
  void gradients_ready(int unit) final;

  // For finish_step. What this rank updates of a unit's segment, everything (stage 0) or its slice: the parameters
  // in their resting dtype and the sum of the step's gradients (of trained segments).
  virtual Extent updated_extent() const { return Extent::slice; }
  virtual TensorView resting_parameters(int unit, Segment segment) = 0;
  virtual ConstTensorView summed_gradients(int unit, Segment segment) = 0;
  // This rank's slice of the sums, at every stage: what it contributes to norm and checks.
  virtual ConstTensorView summed_slice(int unit, Segment segment) = 0;
  // After a change of a unit's resting parameters (on the compute stream): make the others see it.
  virtual void publish(int unit, Changed changed) = 0;
  // Values have changed or memory was borrowed: whatever was gathered is gathered again.
  virtual void forget_gathered() {}

  // The tensor whose gradient was given out last at this address, or "".
  std::string gradient_at(const void* address) const;

  // Elements [begin, end) of a segment that this rank updates.
  std::pair<std::int64_t, std::int64_t> updated_range(int unit, Segment segment) const;
  std::pair<std::int64_t, std::int64_t> slice_range(int unit, Segment segment) const;
  const EngineContext& context() const { return context_; }

 protected:
  Device& device() const { return context_.device; }
  Communicator& communicator() const { return context_.communicator; }
  const Layout& layout() const { return context_.layout; }
  const Precision& precision() const { return context_.precision; }
  bool first_micro_step() const { return micro_step_ == 0; }
  bool last_micro_step() const { return micro_step_ + 1 == context_.accumulation; }
  // The sums are made in the memory of the micro-batch's own gradients.
  bool sums_in_place() const;
  // A rank holds the sums of its own micro-batches, whole, until the last micro-step.
  bool sums_locally() const { return context_.order == AccumulationOrder::local; }

  virtual void on_acquire(int /*unit*/) {}
  virtual void on_release(int /*unit*/) {}
  // Adds the unit's gradients of this micro-batch to the sums, over all ranks.
  virtual void reduce_gradients(int unit) = 0;
  // The memory of a unit's segment that this micro-batch's gradients go to.
  virtual TensorView gradient_memory(int unit, Segment segment) = 0;
  // The whole segment of a unit that is acquired.
  virtual ConstTensorView readable_parameters(int unit, Segment segment) const = 0;
  virtual void on_begin(Pass /*pass*/) {}

  const std::vector<int>& order() const { return *order_; }

 private:
  EngineContext context_;
  const Model* model_ = nullptr;
  const std::vector<int>* order_ = nullptr;
  std::int64_t micro_step_ = 0;
  struct Given {
    ConstTensorView view;
    std::int64_t serial = 0;
  };
  std::vector<bool> contributed_;  // tensors that have a gradient of this micro-batch already
  std::vector<Given> given_;       // by tensor: where its gradient went last
  std::int64_t serial_ = 0;
};

// One file each: stage0.cpp ... stage3.cpp.
std::unique_ptr<Engine> make_stage0(const EngineContext& context);
std::unique_ptr<Engine> make_stage1(const EngineContext& context);
std::unique_ptr<Engine> make_stage2(const EngineContext& context);
std::unique_ptr<Engine> make_stage3(const EngineContext& context);
std::unique_ptr<Engine> make_engine(const EngineContext& context);  // by context.zero.stage

// Averages that the optimizer keeps of a parameter (Adam 2, SGD with momentum 1), by segment.
class MomentsPerParameter {
 public:
  MomentsPerParameter(double everywhere) {  // NOLINT(google-explicit-constructor): a number where it is one
    by_segment_.fill(everywhere);
  }
  double& of(Segment segment) { return by_segment_.at(static_cast<std::size_t>(segment)); }
  double of(Segment segment) const { return by_segment_.at(static_cast<std::size_t>(segment)); }

 private:
  std::array<double, segment_count> by_segment_{};
};

// The paper's numbers (docs/zero.md): bytes of model states per parameter, elements sent by a rank per parameter and
// step. `parameters`: how many of the model's there are by segment, for models in which they are held differently; {1}:
// all as trained matrices. `order`: as asked for.
double formula_bytes_per_parameter(int stage, int ranks, const Precision& precision, std::int64_t accumulation,
                                   const MomentsPerParameter& moments, const ParametersBySegment& parameters = {1},
                                   AccumulationOrder order = AccumulationOrder::global);
// The elements that an optimizer's matrices of hidden layers add to it, which at stages 1 to 3 go to a rank and back
// (whole_matrices.h): the mean over the ranks, per parameter of the model.
double matrix_elements_per_parameter(int stage, const Layout& layout);
double paper_elements_per_parameter(int stage, int ranks, std::int64_t accumulation,
                                    const ParametersBySegment& parameters = {1},
                                    AccumulationOrder order = AccumulationOrder::global);

}  // namespace zt
