#include "model/segments.h"

#include <fnmatch.h>

#include <algorithm>

#include "core/errors.h"
#include "model/gpt_units.h"
#include "model/mlp.h"

namespace zt {

namespace {

Segment segment_of(TensorKind kind, const Precision& precision, bool frozen) {
  const bool vector =
      kind == TensorKind::norm || (kind == TensorKind::bias && precision.vectors == precision.parameter);
  if (frozen) return vector ? Segment::frozen_vectors : Segment::frozen_matrices;
  return vector ? Segment::vectors : Segment::matrices;
}

// The names of a model, those of blocks once: "wte.weight, wpe.weight, h.0 to h.5 (.ln_1.weight, ...), ln_f.weight".
std::string names_in_words(const std::vector<UnitSpec>& units) {
  std::string first_block;
  std::string last_block;
  std::string of_block;
  std::string names;
  for (const UnitSpec& unit : units) {
    const bool block = unit.name.starts_with("h.");
    if (block) {
      if (first_block.empty()) first_block = unit.name;
      last_block = unit.name;
    }
    for (const TensorSpec& tensor : unit.tensors) {
      if (!block) {
        names += (names.empty() ? "" : ", ") + tensor.name;
      } else if (unit.name == first_block) {
        of_block += (of_block.empty() ? "" : ", ") + tensor.name.substr(unit.name.size());
      }
    }
  }
  if (first_block.empty()) return names;
  return names + ", and of each block, " + first_block + " to " + last_block + ": " + of_block;
}

}  // namespace

bool names_parameter(const std::string& pattern, const std::string& parameter) {
  return fnmatch(pattern.c_str(), parameter.c_str(), 0) == 0 ||
         fnmatch((pattern + ".*").c_str(), parameter.c_str(), 0) == 0;
}

void assign_segments(std::vector<UnitSpec>& units, const Precision& precision, const std::vector<std::string>& freeze) {
  std::vector<bool> used(freeze.size(), false);
  bool any_trained = false;
  for (UnitSpec& unit : units) {
    for (TensorSpec& tensor : unit.tensors) {
      bool frozen = false;
      for (std::size_t index = 0; index < freeze.size(); ++index) {
        if (!names_parameter(freeze[index], tensor.name)) continue;
        used[index] = true;
        frozen = true;
      }
      tensor.segment = segment_of(tensor.kind, precision, frozen);
      any_trained = any_trained || !frozen;
    }
  }
  std::string unused;
  for (std::size_t index = 0; index < freeze.size(); ++index) {
    if (!used[index]) unused += (unused.empty() ? "\"" : ", \"") + freeze[index] + "\"";
  }
  if (!unused.empty()) {
    throw UserError("model.freeze: " + unused + " names no parameter of this model; it has " + names_in_words(units) +
                    " (a tied head is wte.weight; * stands for any characters, ? for one, [ab] for one of these)");
  }
  if (!any_trained) {
    throw UserError("model.freeze: every parameter is frozen, nothing is left to train: name fewer");
  }
}

std::vector<UnitSpec> model_units(const Settings& settings) {
  std::vector<UnitSpec> units =
      settings.model.type == "mlp" ? mlp_units(settings.model.mlp) : gpt_units(settings.model.gpt).units;
  assign_segments(units, make_precision(settings.precision, settings.batch.accumulation), settings.model.freeze);
  return units;
}

}  // namespace zt
