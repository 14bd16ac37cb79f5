// A checkpoint's weights and moments into the memory of a session, at any world size, stage and precision.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/native.h"
#include "zero/engine.h"
#include "zero/state_store.h"

namespace zt {

// All ranks call it. Each reads what it updates, through a small buffer, and the checksums of its share of the files
// are compared first. `moments`: the names of those that the optimizer keeps; one that the checkpoint lacks, of
// all tensors or of some, stays as it starts, with the other averages of these tensors, and is returned. RunError on
// all ranks where a file is damaged; UserError where the model is another one.
std::vector<std::string> load_state(Engine& engine, StateStore& states, const NativeCheckpoint& checkpoint,
                                    const std::vector<std::string>& moments);

// Names and shapes must be those of the layout: UserError that lists both sides.
void require_same_tensors(const Layout& layout, const NativeCheckpoint& checkpoint);

}  // namespace zt
