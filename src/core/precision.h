// What is held in which number format. fp32, bf16 and fp16 are presets; formulas of memory and traffic read it.
#pragma once

#include <string>

#include "core/dtype.h"

namespace zt {

struct Precision {
  DType parameter = DType::f32;    // matrices that products read, and the activations
  DType vectors = DType::f32;      // biases and weights of norms
  DType gradient = DType::f32;     // gradient of one micro-batch
  DType accumulator = DType::f32;  // sum over the micro-batches of a step
  DType wire = DType::f32;         // gradients on their way between ranks
  DType master = DType::f32;       // what the optimizer updates
  DType moment = DType::f32;       // its running averages
  DType compute = DType::f32;      // inputs of products: fp32, or bf16 where the processor multiplies it

  // Vectors that are kept in fp32 have fp32 gradients.
  DType vector_gradient() const { return vectors == DType::f32 ? DType::f32 : gradient; }
  DType vector_accumulator() const { return vectors == DType::f32 ? DType::f32 : accumulator; }
  bool operator==(const Precision&) const = default;
};

// `accumulation`: micro-batches of a step on one rank (A). Unless `accumulator` says otherwise ("fp32", "bf16",
// "fp16"; empty: unset) gradients are summed in the training dtype for A = 1 and in fp32 for A > 1.
Precision precision_preset(DType training_dtype, std::int64_t accumulation, const std::string& accumulator);

}  // namespace zt
