// Lines of prompt and completion: one line a sample, and of its tokens only the completion's are learned.
#include <algorithm>
#include <cassert>

#include "core/errors.h"
#include "data/faults.h"
#include "data/file_kind.h"
#include "data/input_file.h"
#include "data/json_lines.h"
#include "data/open.h"

namespace zt {
namespace {

// The tokens of all lines one after the other, shared by the training part and the validation part.
struct Lines {
  TokenArray tokens;
  std::vector<std::int64_t> first;            // of each line; one more at the end
  std::vector<std::int32_t> first_completed;  // of each line: the first position in it that is to be predicted, >= 1

  std::int64_t length(std::size_t line) const { return first[line + 1] - first[line]; }
  // Tokens that a prediction is held against.
  std::int64_t losses(std::size_t line) const { return length(line) - first_completed[line]; }
  std::int64_t bytes() const {
    return tokens.bytes() + static_cast<std::int64_t>(8 * first.size() + 4 * first_completed.size());
  }
};

class PromptSource final : public Source {
 public:
  PromptSource(std::shared_ptr<const Lines> lines, std::vector<std::int32_t> chosen, std::int64_t length)
      : lines_(std::move(lines)), chosen_(std::move(chosen)), length_(length) {}

  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }
  std::int64_t samples() const override { return static_cast<std::int64_t>(chosen_.size()); }
  bool masks_losses() const override { return true; }
  std::int64_t losses(std::int64_t index) const override { return lines_->losses(line(index)); }

  // Token t is the input whose target is token t + 1. What follows the line is padding: causal attention keeps it from
  // all that counts.
  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples());
    const std::size_t at = line(index);
    const auto inputs = static_cast<std::size_t>(lines_->length(at) - 1);
    const auto masked = static_cast<std::size_t>(lines_->first_completed[at] - 1);
    lines_->tokens.copy(lines_->first[at], out.tokens.first(inputs));
    std::ranges::fill(out.tokens.subspan(inputs), 0);
    std::ranges::fill(out.token_targets.first(masked), -1);
    lines_->tokens.copy(lines_->first[at] + lines_->first_completed[at],
                        out.token_targets.subspan(masked, inputs - masked));
    std::ranges::fill(out.token_targets.subspan(inputs), -1);
  }

 private:
  std::size_t line(std::int64_t index) const {
    return static_cast<std::size_t>(chosen_[static_cast<std::size_t>(index)]);
  }

  std::shared_ptr<const Lines> lines_;
  std::vector<std::int32_t> chosen_;  // of the lines
  std::int64_t length_;
};

std::unique_ptr<Tokenizer> tokenizer_for(const std::string& name, const std::vector<PromptCompletion>& prompts,
                                         const std::string& origin) {
  if (name != "characters") return open_tokenizer(name, "data.tokenizer");
  std::string all;
  for (const PromptCompletion& entry : prompts) all += entry.prompt + entry.completion;
  return make_character_tokenizer(all, origin);
}

std::shared_ptr<const Lines> encode(const std::vector<PromptCompletion>& prompts, const Tokenizer& tokenizer,
                                    std::int64_t n_positions, const std::string& origin, std::int64_t& shortened) {
  auto lines = std::make_shared<Lines>();
  std::vector<std::int32_t> ids;
  Faults faults;
  lines->first.push_back(0);
  for (const PromptCompletion& entry : prompts) {
    const std::vector<std::int32_t> prompt = tokenizer.encode(entry.prompt);
    const std::vector<std::int32_t> completion = tokenizer.encode(entry.completion);
    const auto whole = static_cast<std::int64_t>(prompt.size() + completion.size());
    const std::int64_t kept = std::min(whole, n_positions + 1);
    // Without a prompt nothing stands before the first token that could predict it.
    const auto first_completed = std::max<std::int64_t>(1, static_cast<std::int64_t>(prompt.size()));
    if (whole <= first_completed) {
      faults.add(join("line ", entry.line,
                      ": with an empty prompt the completion needs two tokens or more: the first has ",
                      "nothing before it to be predicted from"));
      continue;
    }
    if (kept <= first_completed) {
      faults.add(join("line ", entry.line, ": the prompt of ",
                      counted(static_cast<std::int64_t>(prompt.size()), "token"),
                      " leaves no room for a token of its completion within model.n_positions ", n_positions,
                      ": shorten it, or raise n_positions"));
      continue;
    }
    if (whole > kept) ++shortened;
    ids.insert(ids.end(), prompt.begin(), prompt.end());
    ids.insert(ids.end(), completion.begin(), completion.end());
    ids.resize(static_cast<std::size_t>(lines->first.back() + kept));
    lines->first.push_back(lines->first.back() + kept);
    lines->first_completed.push_back(static_cast<std::int32_t>(first_completed));
  }
  if (faults.count() > 0) {
    throw UserError(
        join(origin, " has ", counted(faults.count(), "line"), " of which nothing would be learned:", faults.list()));
  }
  lines->tokens = TokenArray(static_cast<std::int64_t>(ids.size()), tokenizer.vocabulary_size());
  lines->tokens.visit([&](auto& narrow) {
    using Id = typename std::remove_reference_t<decltype(narrow)>::value_type;
    std::ranges::transform(ids, narrow.begin(), [](std::int32_t id) { return static_cast<Id>(id); });
  });
  return lines;
}

}  // namespace

Dataset open_prompt_completion(const Settings& settings) {
  require_model(settings, "gpt", "text");
  const std::string& path = settings.data.path;
  const std::string origin = origin_of("data.path", path);
  const std::int64_t length = settings.model.gpt.n_positions;

  Dataset dataset;
  std::int64_t shortened = 0;
  std::shared_ptr<const Lines> lines;
  {
    const InputFile file(path, "data.path", "a file of JSON lines");
    require_text(file.bytes(), origin, "name a file of JSON lines");
    const std::vector<PromptCompletion> prompts = read_prompts(file.bytes(), origin);
    if (prompts.empty())
      throw UserError(origin + " has nothing but empty lines; write objects on them, one a line: " +
                      R"({"prompt": "...", "completion": "..."})");
    dataset.tokenizer = tokenizer_for(settings.data.tokenizer, prompts, origin);
    lines = encode(prompts, *dataset.tokenizer, length, origin, shortened);
  }
  dataset.vocab_size = vocabulary_for(settings, *dataset.tokenizer);

  const auto count = static_cast<std::int64_t>(lines->first_completed.size());
  const std::vector<bool> in_validation = split_samples(settings, count, origin, "line");
  std::vector<std::int32_t> training, validation;
  std::int64_t learned = 0;
  for (std::size_t line = 0; line < in_validation.size(); ++line) {
    (in_validation[line] ? validation : training).push_back(static_cast<std::int32_t>(line));
    learned += lines->losses(line);
  }
  const std::size_t validation_count = validation.size();
  dataset.training = std::make_unique<PromptSource>(lines, std::move(training), length);
  if (validation_count > 0) dataset.validation = std::make_unique<PromptSource>(lines, std::move(validation), length);
  dataset.bytes = lines->bytes() + 4 * count;
  dataset.description =
      join(file_name(path), ": ", parts_in_words(dataset, "line"), " of prompt and completion (",
           dataset.tokenizer->name(), ", ", dataset.tokenizer->vocabulary_size(), " different), ",
           counted(lines->tokens.size(), "token"), ", ", learned, " of them learned",
           shortened > 0 ? join("; ", counted(shortened, "line"), " cut at ", length + 1, " tokens") : std::string());
  return dataset;
}

}  // namespace zt
