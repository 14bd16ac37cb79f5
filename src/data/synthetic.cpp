// Which made-up data a config asks for.
#include <algorithm>

#include "core/errors.h"
#include "core/random.h"
#include "data/open.h"

namespace zt {

Dataset open_synthetic(const Settings& settings) {
  const std::int64_t samples = settings.data.samples;
  if (samples < 1) throw UserError(join("data.samples: ", samples, "; it must be 1 or more"));
  // A tenth, at least one where there is one to spare.
  const std::int64_t validation = samples == 1 ? 0 : std::max<std::int64_t>(1, samples / 10);
  const std::int64_t training = samples - validation;
  if (training < settings.batch.train) {
    // Nine tenths of so many are a batch; of a batch that large, that no number holds them, nothing is said.
    std::int64_t tenfold = 0;
    const bool fits = !__builtin_mul_overflow(settings.batch.train, 10, &tenfold);
    throw UserError(join("train_batch_size: ", settings.batch.train, " samples make one step, but data.samples ",
                         samples, " leaves only ", training,
                         " for training (a tenth is for validation); set train_batch_size to ", at_most(training),
                         fits ? join(", or data.samples to ", (tenfold + 8) / 9, " or more") : std::string()));
  }

  const std::uint64_t key = derive_key(settings.training.seed, "synthetic data");
  Dataset dataset;
  std::string what;
  const auto open = [&](auto make, std::int64_t inputs, std::int64_t outputs) {
    dataset.training = make(inputs, outputs, key, 0, training);
    if (validation > 0) dataset.validation = make(inputs, outputs, key, training, validation);
  };
  if (settings.data.task == "tokens") {
    require_model(settings, "gpt", "synthetic token");
    const GptSettings& gpt = settings.model.gpt;
    if (gpt.vocab_size < 1) {
      throw UserError(
          "model.vocab_size: synthetic tokens need a number; \"auto\" takes it from a tokenizer, and there is none");
    }
    dataset.vocab_size = gpt.vocab_size;
    open(make_synthetic_tokens, gpt.vocab_size, gpt.n_positions);
    what = join("synthetic tokens (vocabulary ", gpt.vocab_size, ", length ", gpt.n_positions, ")");
  } else if (settings.data.task == "regression") {
    require_model(settings, "mlp", "synthetic regression");
    const MlpSettings& mlp = settings.model.mlp;
    if (mlp.layers.size() < 2) throw UserError("model.layers: at least two numbers are needed: inputs and outputs");
    const bool classes = mlp.loss == "cross_entropy";
    const std::int64_t inputs = mlp.layers.front();
    const std::int64_t outputs = mlp.layers.back();
    open(classes ? make_synthetic_classification : make_synthetic_regression, inputs, outputs);
    dataset.bytes = inputs * outputs * 4 * (validation > 0 ? 2 : 1);
    what = join("synthetic ", classes ? "classification" : "regression", " (", counted(inputs, "feature"), ", ",
                classes ? counted(outputs, "class", "classes") : counted(outputs, "target"), ")");
  } else {
    throw UserError(
        join("data.task: \"", shown(settings.data.task), "\" is not known; use \"regression\" or \"tokens\""));
  }
  dataset.description = join(what, ": ", parts_in_words(dataset, "sample"));
  return dataset;
}

}  // namespace zt
