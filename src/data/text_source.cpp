// One running text, cut into windows.
#include <algorithm>
#include <cassert>

#include "core/errors.h"
#include "data/input_file.h"
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

// The shortest text whose parts both hold a window and its last target.
std::int64_t tokens_needed(std::int64_t length, double fraction) {
  if (fraction <= 0.0) return length + 1;
  const double window = static_cast<double>(length + 1);
  auto tokens = static_cast<std::int64_t>(std::max(window / fraction, window / (1.0 - fraction)));
  const auto enough = [&](std::int64_t count) {
    const std::int64_t validation = validation_share(count, fraction);
    return validation >= length + 1 && count - validation >= length + 1;
  };
  while (!enough(tokens)) ++tokens;
  while (enough(tokens - 1)) --tokens;
  return tokens;
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
    throw UserError(join("data.validation_fraction: ", fraction, " is not in [0, 1)"));
  }
  const std::string& path = settings.data.path;
  const std::int64_t length = settings.model.gpt.n_positions;
  const std::string origin = "data.path: " + path;

  Dataset dataset;
  std::shared_ptr<const TokenArray> tokens;
  {
    const InputFile file(path, "data.path", "a text file");
    if (settings.data.tokenizer == "characters") {
      dataset.tokenizer = make_character_tokenizer(file.bytes(), origin);
    } else {
      dataset.tokenizer = make_tokenizer(settings.data.tokenizer, {});
    }
    tokens = std::make_shared<const TokenArray>(dataset.tokenizer->encode_corpus(file.bytes(), origin));
  }

  const std::int64_t known = dataset.tokenizer->vocabulary_size();
  dataset.vocab_size = vocabulary_for(settings, *dataset.tokenizer);

  const std::int64_t validation = validation_share(tokens->size(), fraction);
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
  dataset.description = join(file_name(path), ": ", tokens->size(), " tokens (", dataset.tokenizer->name(), ", ", known,
                             " different), ", dataset.training->samples(), " training and ",
                             dataset.validation ? dataset.validation->samples() : 0, " validation samples of ", length);
  return dataset;
}

}  // namespace zt
