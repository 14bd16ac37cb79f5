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

std::string some_names(const std::vector<UnitSpec>& units) {
  constexpr std::size_t most = 6;
  std::string names;
  std::size_t count = 0;
  for (const UnitSpec& unit : units) {
    for (const TensorSpec& tensor : unit.tensors) {
      if (++count <= most) names += (names.empty() ? "" : ", ") + tensor.name;
    }
  }
  return names + (count > most ? ", ..." : "");
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
  for (std::size_t index = 0; index < freeze.size(); ++index) {
    if (used[index]) continue;
    throw UserError("model.freeze: \"" + freeze[index] + "\" names no parameter of this model; its parameters are " +
                    some_names(units) + " (* stands for any characters)");
  }
  if (!any_trained) throw UserError("model.freeze: every parameter is frozen, nothing is left to train");
}

std::vector<UnitSpec> model_units(const Settings& settings) {
  std::vector<UnitSpec> units =
      settings.model.type == "mlp" ? mlp_units(settings.model.mlp) : gpt_units(settings.model.gpt).units;
  assign_segments(units, make_precision(settings.precision, settings.batch.accumulation), settings.model.freeze);
  return units;
}

}  // namespace zt
