// What a rank does in a micro-step for which it has no micro-batch.
#pragma once

#include "model/model.h"
#include "zero/engine.h"

namespace zt {

// Takes part in all that the other ranks gather and reduce in the passes of a micro-step, and computes nothing. What it
// adds to the sums is -0.0, which leaves every number as it is to the bit (0.0 would turn -0.0 into 0.0).
void run_idle_micro_step(Device& device, Engine& engine, const Model& model);

}  // namespace zt
