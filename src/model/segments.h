// Which flat buffer of its unit each tensor goes to: by what it is, by the formats of the run, and by what is frozen.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"
#include "core/precision.h"
#include "model/parameter_access.h"

namespace zt {

// Does a pattern of model.freeze name this parameter? `*`, `?` and `[ab]` stand for any characters, for one, and for
// one of those named; a pattern also names everything below it ("h.0": all of "h.0.attn.c_attn.weight", ...).
bool names_parameter(const std::string& pattern, const std::string& parameter);

// Sets TensorSpec::segment. Linear biases lie with the vectors, or with the matrices where norms have another format
// than these. UserError if a pattern names no parameter, or if nothing is left to train.
void assign_segments(std::vector<UnitSpec>& units, const Precision& precision, const std::vector<std::string>& freeze);

// The units of the model that the settings describe, segments assigned.
std::vector<UnitSpec> model_units(const Settings& settings);

}  // namespace zt
