// What the verbs that use a model begin with: its config, and a model for inference on a device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/native.h"
#include "config/resolve.h"
#include "data/tokenizer.h"
#include "inference/weights.h"
#include "model/model.h"
#include "train/compute.h"

namespace zt {

// The config that a checkpoint was trained by, with files and --set laid over it; its device section is left out, and
// device.type is "cpu" unless it is given anew. An imported checkpoint has a model only: the rest is to be given, or
// without `uses_data` all but the data. UserError where these change the model or where it is no config.
ResolvedConfig config_of_checkpoint(const NativeCheckpoint& checkpoint, const std::vector<std::string>& files,
                                    const std::vector<std::string>& sets, bool uses_data = true);

// The tokenizer that came with the checkpoint; null: it was trained on tokens without text.
std::unique_ptr<Tokenizer> tokenizer_of(const NativeCheckpoint& checkpoint);

// The same, or where it has none, the one that `path` names (open_tokenizer); "": none is named. UserError where it has
// one of its own, and where the model's `vocabulary` is less than what is named.
std::unique_ptr<Tokenizer> tokenizer_for(const NativeCheckpoint& checkpoint, const std::string& path,
                                         std::int64_t vocabulary);
std::unique_ptr<Tokenizer> named_tokenizer(const std::string& path, std::int64_t vocabulary);  // that of --tokenizer
std::string has_its_own_tokenizer(const std::string& weights, const Tokenizer& own);  // why --tokenizer is refused

class InferenceModel {
 public:
  // Activations of `rows` rows.
  InferenceModel(const Settings& settings, Device& device, std::int64_t rows);

  Model& model() { return *model_; }
  InferenceWeights& weights() { return weights_; }

 private:
  Precision precision_;
  std::unique_ptr<Model> model_;
  InferenceWeights weights_;
};

// What a model is used for, on a device that may only count. Values are not to be looked at where device.computes() is
// false.
using UseModel = std::function<void(InferenceModel& model, Device& device, Communicator& communicator)>;

// Finds a device, sees by a rehearsal on a counting device what `use` needs of it, and runs `use` there with the
// weights that `load` puts in their place, without communication. All ranks call it. `config` is settled. UserError
// where memory does not suffice.
using LoadWeights = std::function<void(InferenceWeights& weights)>;
void with_model(ResolvedConfig& config, const LoadWeights& load, std::int64_t rows, Communicator& communicator,
                const UseModel& rehearsal, const UseModel& use);
// With the checkpoint's weights.
void with_model(ResolvedConfig& config, const NativeCheckpoint& checkpoint, std::int64_t rows,
                Communicator& communicator, const UseModel& rehearsal, const UseModel& use);

}  // namespace zt
