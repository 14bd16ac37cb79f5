#include "app/evaluated_data.h"

#include <cstdio>
#include <utility>

#include "core/errors.h"
#include "data/input_file.h"
#include "data/message_text.h"
#include "data/open.h"
#include "inference/sliding_source.h"

namespace zt {

namespace {

bool is_running_text(const DataSettings& data) { return data.type == "text" && data.format != "prompt_completion"; }

// Where a part of a text is too short for a window. `suffices`: the whole text would do.
std::string what_helps(const DataSettings& data, const std::string& part, bool suffices) {
  if (!suffices) return "give a longer text";
  return std::string("use --part all, ") + (part == "validation" ? "a larger" : "a smaller") +
         " data.validation_fraction (it is " + shown(data.validation_fraction) + "), or a longer text";
}

// A running text in the tokens that the model knows, whatever else the text consists of.
EvaluatedData open_running_text(const Settings& settings, std::unique_ptr<Tokenizer> tokenizer,
                                const std::string& part) {
  const std::string& path = settings.data.path;
  const std::string origin = origin_of("data.path", path);
  const InputFile file(path, "data.path", "a text file");
  if (tokenizer == nullptr) {
    std::fprintf(stderr,
                 "notice: the weights came without a tokenizer: the text is read in the tokens of data.tokenizer, "
                 "\"%s\"\n",
                 shown(settings.data.tokenizer).c_str());
    tokenizer = settings.data.tokenizer == "characters" ? make_character_tokenizer(file.bytes(), origin)
                                                        : open_tokenizer(settings.data.tokenizer, "data.tokenizer");
  }
  vocabulary_for(settings, *tokenizer);
  const auto tokens = std::make_shared<const TokenArray>(tokenizer->encode_corpus(file.bytes(), origin));
  const std::int64_t validation = validation_share(tokens->size(), settings.data.validation_fraction);
  const std::int64_t first = part == "validation" ? tokens->size() - validation : 0;
  const std::int64_t count = part == "training" ? tokens->size() - validation : tokens->size() - first;
  const std::int64_t length = settings.model.gpt.n_positions;
  if (count < length + 1) {
    throw UserError(origin + ": " + (part == "all" ? "the whole text" : "the " + part + " part") + " has " +
                    counted(count, "token") + ", and one window needs " + std::to_string(length + 1) +
                    " (model.n_positions " + std::to_string(length) +
                    "): " + what_helps(settings.data, part, tokens->size() > length));
  }
  return {.windows = make_window_source(tokens, first, count, length),
          .sliding = nullptr,
          .tokenizer = std::move(tokenizer),
          .description = file_name(path) + ", " + part + " part: " + counted(count, "token")};
}

// Token files need not say which tokenizer they were made with: it is then taken to be the model's own.
EvaluatedData open_other(const Settings& settings, EvaluatedModel model, const std::string& part) {
  if (part == "all") throw UserError("--part all is for a running text; use validation or training");
  Dataset dataset = open_dataset(settings);
  std::unique_ptr<Tokenizer> own = std::move(model.tokenizer);
  const bool is_unnamed = settings.data.type == "tokens" && dataset.tokenizer == nullptr;
  const bool both = own != nullptr && dataset.tokenizer != nullptr;
  if (own == nullptr && !model.tokenizer_is_known) {
    own = std::move(dataset.tokenizer);
  } else if (both ? own->name() != dataset.tokenizer->name() || own->definition() != dataset.tokenizer->definition()
                  : !is_unnamed && (own != nullptr || dataset.tokenizer != nullptr)) {
    throw UserError("data: its tokens are not those that the model of " + model.name + " was trained on: " +
                    (own == nullptr
                         ? "that has no tokenizer; name it with --tokenizer PATH, if its tokens are of a text"
                         : "the tokenizer is another one"));
  }
  if (part == "validation" && dataset.validation == nullptr) {
    throw UserError(
        "data: there is no validation part: set data.validation_fraction, or name validation data, or use --part "
        "training");
  }
  return {.windows = std::move(part == "validation" ? dataset.validation : dataset.training),
          .sliding = nullptr,
          .tokenizer = std::move(own),
          .description = dataset.description + "; " + part + " part"};
}

std::string samples_in_words(const DataSettings& data) {
  if (data.type == "text") return "its prompts with their completions";
  if (data.type == "synthetic" && data.task == "tokens") return "its sequences";
  return "its rows";
}

void require_running_tokens(const Settings& settings, std::int64_t stride) {
  const DataSettings& data = settings.data;
  if (!is_running_text(data) && data.type != "tokens") {
    throw UserError("--stride is for tokens that run on, a running text or token files; data.type is \"" + data.type +
                    "\", and " + samples_in_words(data) +
                    " are separate samples, between which no window lies: leave --stride out");
  }
  const std::int64_t length = settings.model.gpt.n_positions;
  if (settings.model.type == "gpt" && stride > length) {
    throw UserError("--stride " + std::to_string(stride) + " leaves tokens out: at most model.n_positions, " +
                    std::to_string(length) + ", which is no overlap");
  }
}

}  // namespace

EvaluatedData open_evaluated_data(const Settings& settings, EvaluatedModel model, const std::string& part,
                                  std::int64_t stride) {
  if (stride > 0) require_running_tokens(settings, stride);
  const bool as_text = is_running_text(settings.data) && settings.model.type == "gpt" &&
                       (model.tokenizer != nullptr || !model.tokenizer_is_known);
  EvaluatedData data = as_text ? open_running_text(settings, std::move(model.tokenizer), part)
                               : open_other(settings, std::move(model), part);
  if (stride > 0 && stride < settings.model.gpt.n_positions)
    data.sliding = std::make_unique<SlidingSource>(*data.windows, stride);
  return data;
}

}  // namespace zt
