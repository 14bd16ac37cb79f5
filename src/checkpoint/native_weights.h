// Checkpoints of zerotrain's own as a source of weights, and made from one.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/weight_source.h"

namespace zt {

// `path`: a checkpoint, or a run's directory: its newest. UserError where there is none, RunError where it is damaged.
std::unique_ptr<WeightSource> open_native_weights(const std::string& path);

// Writes a checkpoint without a training state to `directory`, which must not exist, or be empty: it appears whole or
// not at all. `program`: what wrote it; `tokenizer`: with its definition, if it goes into the checkpoint. UserError
// where the source does not hold a model of its settings, or a value is not finite.
void write_native_weights(const WeightSource& source, const std::string& directory, const std::string& program,
                          const std::optional<StoredTokenizer>& tokenizer = {});

}  // namespace zt
