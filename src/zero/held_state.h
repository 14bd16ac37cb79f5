// The training state that a rank holds, run by run: what checkpoints are written from and read into.
#pragma once

#include <cstdint>
#include <functional>

#include "zero/state_store.h"

namespace zt {

// Weights, as precise as they are held (masters where there are such), or one of the optimizer's moments.
constexpr int held_weights = -1;  // moments are 0, 1, ...

// A run of elements of one tensor, in the device's memory.
struct StateRun {
  int tensor = 0;           // index in the layout
  std::int64_t offset = 0;  // of the first element within the tensor: a multiple of 128
  TensorView values;
};
using VisitState = std::function<void(const StateRun&)>;

// What this rank alone answers for: its slice of everything, at every stage. Over all ranks every element of the model
// is visited once (of moments: of the trained tensors that keep them).
void visit_owned_state(Engine& engine, StateStore& states, int kind, const VisitState& visit);

// What this rank updates, which at stage 0 is everything: all that must be set for the rank to hold another state. Once
// weights have been set, publish_weights() makes all ranks see them.
void visit_updated_state(Engine& engine, StateStore& states, int kind, const VisitState& visit);

}  // namespace zt
