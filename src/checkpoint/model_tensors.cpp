// In a file of its own, so that readers of one kind of model need not be linked with the others.
#include "checkpoint/weight_source.h"
#include "model/gpt_units.h"
#include "model/mlp.h"

namespace zt {

std::vector<WeightSource::Tensor> tensors_of(const ModelSettings& model) {
  return tensors_of(model.type == "gpt" ? gpt_units(model.gpt).units : mlp_units(model.mlp));
}

}  // namespace zt
