// Weights from a file into a model that is spread over ranks.
#pragma once

#include "checkpoint/weight_source.h"
#include "zero/engine.h"
#include "zero/state_store.h"

namespace zt {

// Sets all weights; every rank reads what it updates, through a buffer of a few MiB, and then all see them. Called by
// all ranks, as initialize_parameters is. UserError where names or shapes do not fit, a checksum does not, or a value
// is not finite.
void load_weights(Engine& engine, StateStore& states, const WeightSource& source);

}  // namespace zt
