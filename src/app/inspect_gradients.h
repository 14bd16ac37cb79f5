// inspect --gradients: the gradient of one micro-batch at a checkpoint's weights, in fp32 and in fp16.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/native.h"

namespace zt {

struct GradientRequest {
  std::string pattern;            // tensors with this in their name
  std::vector<double> scales;     // besides 1, in fp16
  std::vector<std::string> sets;  // keys of the config: a.b.c=VALUE
  bool json = false;
};

// Runs the training code on the micro-batch that the checkpoint's run would take next, and prints how large the
// elements of its gradient are. UserError where the config cannot be used any more, as when its data are gone.
void inspect_gradients(const NativeCheckpoint& checkpoint, const GradientRequest& request);

}  // namespace zt
