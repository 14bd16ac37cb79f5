// One running text, cut into windows.
#include <algorithm>
#include <cassert>
#include <optional>

#include "core/errors.h"
#include "data/file_kind.h"
#include "data/input_file.h"
#include "data/json_lines.h"
#include "data/open.h"

namespace zt {
namespace {

class WindowSource final : public Source {
 public:
  WindowSource(std::shared_ptr<const TokenArray> tokens, std::int64_t first, std::int64_t count, std::int64_t length)
      : tokens_(std::move(tokens)), first_(first), length_(length), samples_(count > 0 ? (count - 1) / length : 0) {
    assert(first >= 0 && count >= 0 && first + count <= tokens_->size());
  }

  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return samples_; }
  bool goes_on(std::int64_t index) const override { return index > 0; }

  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples_);
    const std::int64_t start = first_ + index * length_;
    tokens_->copy(start, out.tokens);
    tokens_->copy(start + 1, out.token_targets);
  }

 private:
  std::shared_ptr<const TokenArray> tokens_;
  std::int64_t first_, length_, samples_;
};

// The shortest text whose parts both hold a window and its last target; none if it were longer than any text is.
std::optional<std::int64_t> tokens_needed(std::int64_t length, double fraction) {
  constexpr std::int64_t longest = 1'000'000'000'000;
  const std::int64_t window = length + 1;
  const auto enough = [&](std::int64_t count) {
    const std::int64_t validation = validation_share(count, fraction);
    return count - validation >= window && (fraction <= 0.0 || validation >= window);
  };
  if (!enough(longest)) return std::nullopt;
  std::int64_t short_of = 0, reached = longest;  // the first is not enough, the second is
  while (reached - short_of > 1) {
    const std::int64_t middle = short_of + (reached - short_of) / 2;
    (enough(middle) ? reached : short_of) = middle;
  }
  return reached;
}

[[noreturn]] void fail_too_short(const Settings& settings, const std::string& origin, std::int64_t tokens) {
  const double fraction = settings.data.validation_fraction;
  const std::int64_t length = settings.model.gpt.n_positions;
  const std::optional<std::int64_t> needed = tokens_needed(length, fraction);
  std::string remedies = needed ? "; use a longer text" : "; use";
  if (fraction > 0.0) {
    const auto add = [&](const std::string& remedy) { remedies += (remedies.ends_with("use") ? " " : ", ") + remedy; };
    if (tokens_needed(1, fraction)) add("a smaller n_positions");
    // Half and half asks for the shortest text.
    if (fraction != 0.5) add(join("a ", fraction < 0.5 ? "larger" : "smaller", " validation_fraction"));
    add("or validation_fraction 0 for no validation");
  } else {
    remedies += " or a smaller n_positions";
  }
  throw UserError(join(origin, " is too short: ", counted(tokens, "token"), "; ",
                       needed ? join("at least ", *needed, " are needed") : "no text is long enough",
                       " for one training ", fraction > 0.0 ? "and one validation sample" : "sample",
                       " with model.n_positions ", length, " and data.validation_fraction ", shown(fraction),
                       remedies));
}

// What the bytes of a text that is taken as it is may not be meant to be.
std::vector<std::string> notices_of(std::string_view bytes, const std::string& origin) {
  std::vector<std::string> notices;
  if (const std::string packed = packed_in_words(bytes); !packed.empty()) {
    notices.push_back(join(origin, " ", packed, ". Its bytes are trained on as they stand"));
  } else if (const std::string binary = binary_in_words(bytes); !binary.empty()) {
    notices.push_back(join(origin, " ", binary, ". Its bytes are trained on as they stand"));
  }
  if (looks_like_prompts(bytes)) {
    notices.push_back(
        join(origin,
             " is read as one running text, but its first line is an object of prompt and completion: set "
             "data.format to \"prompt_completion\" to learn the completions alone"));
  }
  return notices;
}

}  // namespace

std::unique_ptr<Source> make_window_source(std::shared_ptr<const TokenArray> tokens, std::int64_t first,
                                           std::int64_t count, std::int64_t length) {
  return std::make_unique<WindowSource>(std::move(tokens), first, count, length);
}

Dataset open_text(const Settings& settings) {
  require_model(settings, "gpt", "text");
  const double fraction = settings.data.validation_fraction;
  if (!(fraction >= 0.0 && fraction < 1.0)) {
    throw UserError(join("data.validation_fraction: ", shown(fraction), " is not in [0, 1)"));
  }
  const std::string& path = settings.data.path;
  const std::int64_t length = settings.model.gpt.n_positions;
  const std::string origin = origin_of("data.path", path);

  Dataset dataset;
  std::shared_ptr<const TokenArray> tokens;
  {
    const InputFile file(path, "data.path", "a text file");
    dataset.notices = notices_of(file.bytes(), origin);
    if (settings.data.tokenizer == "characters") {
      require_text(file.bytes(), origin, "name a text file, or set data.tokenizer to \"bytes\", which takes any file");
      dataset.tokenizer = make_character_tokenizer(file.bytes(), origin);
    } else {
      dataset.tokenizer = open_tokenizer(settings.data.tokenizer, "data.tokenizer");
    }
    tokens = std::make_shared<const TokenArray>(dataset.tokenizer->encode_corpus(file.bytes(), origin));
  }

  const std::int64_t known = dataset.tokenizer->vocabulary_size();
  dataset.vocab_size = vocabulary_for(settings, *dataset.tokenizer);

  const std::int64_t validation = validation_share(tokens->size(), fraction);
  const std::int64_t training = tokens->size() - validation;
  if (training < length + 1 || (fraction > 0.0 && validation < length + 1))
    fail_too_short(settings, origin, tokens->size());
  dataset.training = make_window_source(tokens, 0, training, length);
  if (fraction > 0.0) dataset.validation = make_window_source(tokens, training, validation, length);
  if (dataset.training->samples() < settings.batch.train) {
    const std::int64_t windows = dataset.training->samples();
    throw UserError(join("train_batch_size: ", settings.batch.train,
                         " samples make one step, but the training part of ", shown_path(path), " (",
                         counted(training, "token"), ") gives only ", counted(windows, "window"),
                         " of model.n_positions ", length, "; set train_batch_size to ", at_most(windows),
                         ", use a longer text or a smaller n_positions"));
  }
  dataset.bytes = tokens->bytes();
  dataset.description = join(file_name(path), ": ", counted(tokens->size(), "token"), " (", dataset.tokenizer->name(),
                             ", ", known, " different), ", parts_in_words(dataset, "sample"), " of ", length);
  return dataset;
}

}  // namespace zt
