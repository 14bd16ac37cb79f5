// The end of a step, the same at every stage: agree, take the norm, clip, update what this rank owns, publish.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "optim/optimizer.h"
#include "optim/update_gate.h"
#include "zero/state_store.h"

namespace zt {

class WholeMatrices;

// What all ranks know of a step after one all-reduce of integers, equal on all to the bit.
struct Agreement {
  double loss_sum = 0.0;  // over all rows that count
  std::int64_t losses_not_finite = 0;
  double squares = 0.0;                   // of the sums of gradients, still multiplied by S * J
  std::int64_t gradients_not_finite = 0;  // elements
  std::int64_t votes = 0;                 // sum of what the ranks voted
};

// What is added up over all ranks: integers only, so that the order does not matter.
struct StepMessage {
  std::array<Accumulator, 2> sums;  // losses, squares of gradients
  std::int64_t votes = 0;

  Agreement agreement() const;
};
static_assert(sizeof(StepMessage) % sizeof(std::int64_t) == 0);

// The message of this rank in the device's memory.
class StepSums {
 public:
  explicit StepSums(Device& device);
  void clear();
  void add_losses(const float* losses, std::int64_t count);
  void add_squares(ConstTensorView gradients);
  // The host waits for the compute stream and for all ranks.
  Agreement agree(Communicator& communicator, std::int64_t vote);
  StepMessage* message() const { return buffer_.as<StepMessage>(); }

 private:
  Device& device_;
  Buffer buffer_;  // a StepMessage
};

struct StepOutcome {
  std::int64_t step = 0;  // attempted steps, this one included
  Agreement agreed;
  Decision decision;
  double loss = 0.0;           // mean over all that counts, before the update; NaN where it is not finite
  double grad_norm = 0.0;      // of the mean gradient, before clipping; NaN where gradients or the loss were not finite
  double scale = 1.0;          // that the loss was multiplied by
  double learning_rate = 0.0;  // that an update uses
  std::optional<double> seconds;  // from the decision before to this one, on the device; where outcomes are read late
  // Scales of the attempts before this one, on the same batch, whose gradients overflowed (fp16.on_overflow "retry").
  std::vector<double> retried_scales;
};

struct FinishContext {
  Engine& engine;
  StateStore& states;
  Optimizer& optimizer;
  UpdateGate& gate;
  StepSums& sums;
  double clip = 0.0;                             // largest norm; 0: no clipping
  double divisor = 1.0;                          // J: gradients are sums over so many micro-batches, each a mean;
                                                 // less what each was divided by before
  double losses = 1.0;                           // V: the sum of losses is over so many
  bool decay_biases = true, decay_norms = true;  // whether the optimizer's weight decay applies to them
  WholeMatrices* matrices = nullptr;             // where the optimizer has a rule for them
};

// Once, before the first step: the memory of an optimizer that needs sums over whole tensors. (What it needs for whole
// matrices: whole_matrices.h.)
void prepare_optimizer(Engine& engine, Optimizer& optimizer);

// `applied`: steps applied before this one; `scheduled`: for this one; `vote`: summed over ranks (Agreement).
// `decided` is called once the host has waited for the device, before the update is put on its streams.
StepOutcome finish_step(FinishContext& context, std::int64_t applied, const ScheduledValues& scheduled,
                        std::int64_t vote, const std::function<void()>& decided = {});

// Calls visit for every run of weights that this rank updates (or would, of frozen ones), as precise as they are held:
// `values` are the elements of `tensor` from `offset` on, in the device's memory. They may be changed once all ranks
// have stopped gathering what was there (an agreement of all); then publish_weights() makes all ranks see them.
using VisitWeights = std::function<void(const TensorPlace& tensor, std::int64_t offset, TensorView values)>;
void visit_weights(Engine& engine, StateStore& states, const VisitWeights& visit);
void publish_weights(Engine& engine, StateStore& states);

// Initial values: every rank sets what it updates, by seed, tensor's name and element; then all see them.
void initialize_parameters(Engine& engine, StateStore& states, std::uint64_t seed);

// The checksum of all fp32 weights, equal at every stage and world size that hold the same values.
// `scratch`: 8 bytes of the device.
std::uint64_t weights_checksum(Engine& engine, StateStore& states, const Buffer& scratch);

}  // namespace zt
