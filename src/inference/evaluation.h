// A model's loss over a whole source.
#pragma once

#include <optional>

#include "comm/communicator.h"
#include "data/source.h"
#include "inference/setup.h"

namespace zt {

struct Evaluation {
  double loss = 0.0;                  // mean over all that counts: in nats, or squared errors; NaN if it is not finite
  std::optional<double> accuracy;     // of classes
  std::optional<std::int64_t> bytes;  // of text that the tokens that count stand for
  std::int64_t counted = 0;           // tokens or rows
  std::int64_t samples = 0;           // windows or rows
};

// All samples, in micro-batches of `rows`, dealt out to the ranks; all call it and get the same. Losses are added up
// exactly, so no number depends on how many ranks there are. With a tokenizer, bytes are counted. `stop`: asked between
// micro-batches; once it holds on any rank all return nothing.
std::optional<Evaluation> evaluate_all(InferenceModel& model, Device& device, Communicator& communicator,
                                       const Source& source, std::int64_t rows, const Tokenizer* tokenizer,
                                       const std::function<bool()>& stop);

// What evaluate_all will run on the device; `shape` of the source.
void rehearse_evaluation(InferenceModel& model, Device& device, const SampleShape& shape, std::int64_t rows);

}  // namespace zt
