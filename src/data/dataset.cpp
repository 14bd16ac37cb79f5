#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/precision.h"
#include "core/random.h"
#include "data/open.h"
#include "data/permutation.h"

namespace zt {

void require_model(const Settings& settings, const std::string& type, const std::string& data) {
  if (settings.model.type == type) return;
  throw UserError(join("data.type: ", data, " data are for model.type \"", type, "\", not \"", settings.model.type,
                       "\"; change one of the two"));
}

void require_one_step(const Settings& settings, std::int64_t samples, const std::string& what) {
  if (samples >= settings.batch.train) return;
  throw UserError(join("train_batch_size: ", settings.batch.train, " samples make one step, but ", what,
                       "; set train_batch_size to ", at_most(samples)));
}

std::int64_t validation_share(std::int64_t count, double fraction) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(count) * fraction));
}

std::vector<bool> validation_samples(std::int64_t count, double fraction, std::uint64_t split_seed) {
  std::vector<bool> chosen(static_cast<std::size_t>(count), false);
  if (count == 0) return chosen;
  const Permutation order(count, derive_key(split_seed, "validation samples"));
  const std::int64_t share = validation_share(count, fraction);
  for (std::int64_t i = 0; i < share; ++i) chosen[static_cast<std::size_t>(order(i))] = true;
  return chosen;
}

std::vector<bool> split_samples(const Settings& settings, std::int64_t count, const std::string& origin,
                                const std::string& thing) {
  const double fraction = settings.data.validation_fraction;
  const std::int64_t validation = validation_share(count, fraction);
  if (fraction > 0.0 && (validation == 0 || validation == count)) {
    throw UserError(join(origin, " has ", counted(count, thing), ", of which data.validation_fraction ",
                         shown(fraction), " leaves ", validation == 0 ? "none for validation" : "none for training",
                         "; give more ", thing, "s, a ", validation == 0 ? "larger" : "smaller",
                         " validation_fraction, or 0 for no validation"));
  }
  require_one_step(
      settings, count - validation,
      join(file_name(settings.data.path), " has only ", counted(count - validation, thing), " for training"));
  return validation_samples(count, fraction, settings.data.split_seed);
}

std::string parts_in_words(const Dataset& dataset, const std::string& thing) {
  const std::int64_t validation = dataset.validation ? dataset.validation->samples() : 0;
  return join(dataset.training->samples(), " training and ", counted(validation, "validation " + thing));
}

bool computes_in_fp16(const Settings& settings) {
  return precision_preset(settings.precision.preset).precision.compute == DType::f16;
}

std::int64_t vocabulary_for(const Settings& settings, const Tokenizer& tokenizer) {
  const std::int64_t known = tokenizer.vocabulary_size();
  const std::int64_t asked = settings.model.gpt.vocab_size;
  if (asked != 0 && asked < known) {
    throw UserError(
        join("model.vocab_size: ", asked, " is less than the ", known, " tokens of ", shown_path(settings.data.path),
             " with the tokenizer \"", tokenizer.name(), "\"; ",
             settings.model.pretrained.empty()
                 ? join("use \"auto\" or ", known)
                 : "the weights of model.pretrained know no others: set data.tokenizer to the one that they "
                   "were trained with"));
  }
  return asked == 0 ? known : asked;
}

namespace {

Dataset open_by_type(const Settings& settings) {
  const DataSettings& data = settings.data;
  if (data.type == "text")
    return data.format == "prompt_completion" ? open_prompt_completion(settings) : open_text(settings);
  if (data.type == "tokens") return open_token_files(settings);
  if (data.type == "idx") return open_idx(settings);
  if (data.type == "csv") return open_csv(settings);
  if (data.type == "synthetic") return open_synthetic(settings);
  throw UserError(join("data.type: \"", shown(data.type),
                       "\" is not known; use \"text\", \"tokens\", \"idx\", \"csv\" or \"synthetic\""));
}

}  // namespace

Dataset open_dataset(const Settings& settings) {
  Dataset dataset = open_by_type(settings);
  if (!settings.model.pretrained.empty() && dataset.tokenizer != nullptr &&
      dataset.tokenizer->vocabulary_size() < dataset.vocab_size) {
    dataset.notices.push_back(join("model.pretrained knows ", dataset.vocab_size, " tokens, the tokenizer \"",
                                   dataset.tokenizer->name(), "\" ", dataset.tokenizer->vocabulary_size(),
                                   ": their ids mean the same only if the weights were trained with it"));
  }
  return dataset;
}

}  // namespace zt
