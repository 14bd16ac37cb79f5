#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "core/errors.h"
#include "core/random.h"
#include "data/source.h"
#include "data/text_file.h"

namespace zt {
namespace {

template <typename... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

std::int64_t validation_tokens(std::int64_t tokens, double fraction) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(tokens) * fraction));
}

// The shortest text whose parts both hold a window and its last target.
std::int64_t tokens_needed(std::int64_t length, double fraction) {
  if (fraction <= 0.0) return length + 1;
  const double window = static_cast<double>(length + 1);
  auto tokens = static_cast<std::int64_t>(std::max(window / fraction, window / (1.0 - fraction)));
  const auto enough = [&](std::int64_t count) {
    const std::int64_t validation = validation_tokens(count, fraction);
    return validation >= length + 1 && count - validation >= length + 1;
  };
  while (!enough(tokens)) ++tokens;
  while (enough(tokens - 1)) --tokens;
  return tokens;
}

void require_model(const Settings& settings, const std::string& type, const std::string& data) {
  if (settings.model.type == type) return;
  throw UserError(join("data.type: ", data, " data are for model.type \"", type, "\", not \"", settings.model.type,
                       "\"; change one of the two"));
}

Dataset open_text(const Settings& settings) {
  require_model(settings, "gpt", "text");
  const double fraction = settings.data.validation_fraction;
  if (!(fraction >= 0.0 && fraction < 1.0)) {
    throw UserError(join("data.validation_fraction: ", fraction, " is not in [0, 1)"));
  }
  const std::string& path = settings.data.path;
  const std::int64_t length = settings.model.gpt.n_positions;
  const std::string origin = "data.path: " + path;

  Dataset dataset;
  std::shared_ptr<const TokenArray> tokens;
  {
    const TextFile file(path, "data.path");
    if (settings.data.tokenizer == "characters") {
      dataset.tokenizer = make_character_tokenizer(file.text(), origin);
    } else {
      dataset.tokenizer = make_tokenizer(settings.data.tokenizer, {});
    }
    tokens = std::make_shared<const TokenArray>(dataset.tokenizer->encode_corpus(file.text(), origin));
  }

  const std::int64_t known = dataset.tokenizer->vocabulary_size();
  dataset.vocab_size = settings.model.gpt.vocab_size == 0 ? known : settings.model.gpt.vocab_size;
  if (dataset.vocab_size < known) {
    throw UserError(join("model.vocab_size: ", dataset.vocab_size, " is less than the ", known, " tokens of ", path,
                         " with the tokenizer \"", dataset.tokenizer->name(), "\"; use \"auto\" or ", known));
  }

  const std::int64_t validation = validation_tokens(tokens->size(), fraction);
  const std::int64_t training = tokens->size() - validation;
  const std::int64_t needed = tokens_needed(length, fraction);
  if (training < length + 1 || (fraction > 0.0 && validation < length + 1)) {
    throw UserError(join(origin, " is too short: ", tokens->size(), " tokens; at least ", needed,
                         " are needed for one training ", fraction > 0.0 ? "and one validation sample" : "sample",
                         " with model.n_positions ", length, " and data.validation_fraction ", fraction,
                         "; use a longer text",
                         fraction > 0.0 ? ", a smaller n_positions, or validation_fraction 0 for no validation"
                                        : " or a smaller n_positions"));
  }
  dataset.training = make_window_source(tokens, 0, training, length);
  if (fraction > 0.0) dataset.validation = make_window_source(tokens, training, validation, length);
  if (dataset.training->samples() < settings.batch.train) {
    throw UserError(join("train_batch_size: ", settings.batch.train,
                         " samples make one step, but the training part of ", path, " (", training,
                         " tokens) gives only ", dataset.training->samples(), " windows of model.n_positions ", length,
                         "; set train_batch_size to ", dataset.training->samples(),
                         " or less, use a longer text or a smaller n_positions"));
  }
  dataset.bytes = tokens->bytes();
  dataset.description =
      join(std::filesystem::path(path).filename().string(), ": ", tokens->size(), " tokens (",
           dataset.tokenizer->name(), ", ", known, " different), ", dataset.training->samples(), " training and ",
           dataset.validation ? dataset.validation->samples() : 0, " validation samples of ", length);
  return dataset;
}

Dataset open_synthetic(const Settings& settings) {
  const std::int64_t samples = settings.data.samples;
  if (samples < 1) throw UserError(join("data.samples: ", samples, "; it must be 1 or more"));
  // A tenth, at least one where there is one to spare.
  const std::int64_t validation = samples == 1 ? 0 : std::max<std::int64_t>(1, samples / 10);
  const std::int64_t training = samples - validation;
  if (training < settings.batch.train) {
    throw UserError(join("train_batch_size: ", settings.batch.train, " samples make one step, but data.samples ",
                         samples, " leaves only ", training,
                         " for training (a tenth is for validation); set train_batch_size to ", training,
                         " or less, or data.samples to ", (settings.batch.train * 10 + 8) / 9, " or more"));
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
    what = join("synthetic ", classes ? "classification" : "regression", " (", inputs, " features, ", outputs,
                classes ? " classes)" : " targets)");
  } else {
    throw UserError(join("data.task: \"", settings.data.task, "\" is not known; use \"regression\" or \"tokens\""));
  }
  dataset.description = join(what, ": ", training, " training and ", validation, " validation samples");
  return dataset;
}

}  // namespace

Dataset open_dataset(const Settings& settings) {
  if (settings.data.type == "text") return open_text(settings);
  if (settings.data.type == "synthetic") return open_synthetic(settings);
  throw UserError(join("data.type: \"", settings.data.type, "\" is not known; use \"text\" or \"synthetic\""));
}

}  // namespace zt
