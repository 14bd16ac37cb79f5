// Files of tokens, cut into windows.
#include <algorithm>
#include <cassert>

#include "core/errors.h"
#include "data/open.h"
#include "data/token_files.h"

namespace zt {
namespace {

constexpr std::int64_t bytes_checked_whole = std::int64_t{4} << 30;  // seconds of reading; larger runs: in parts
constexpr std::int64_t end_of_text_of_gpt2 = 50256;

class TokenFileSource : public Source {
 public:
  TokenFileSource(std::shared_ptr<const TokenRun> run, std::int64_t length, std::int64_t vocabulary, bool is_checked)
      : run_(std::move(run)), length_(length), vocabulary_(vocabulary), is_checked_(is_checked) {}
  SampleShape shape() const override { return {.tokens = length_, .token_targets = length_}; }

 protected:
  // Inputs and targets of the window of `count` tokens that starts at `start`.
  void copy(std::int64_t start, std::int64_t count, const SampleView& out) const {
    const auto size = static_cast<std::size_t>(count);
    run_->copy(start, out.tokens.first(size));
    std::ranges::copy(out.tokens.subspan(1, size - 1), out.token_targets.begin());
    run_->copy(start + count, out.token_targets.subspan(size - 1, 1));
    if (is_checked_) return;
    const auto is_wrong = [&](std::int32_t id) { return id < 0 || id >= vocabulary_; };
    if (std::ranges::any_of(out.tokens.first(size), is_wrong) || is_wrong(out.token_targets[size - 1]))
      throw RunError(run_->complaint(start, count + 1, vocabulary_));
  }

  std::shared_ptr<const TokenRun> run_;
  std::int64_t length_, vocabulary_;
  bool is_checked_;  // all ids are known to be in the vocabulary
};

// Windows side by side, whatever lies in them.
class JoinedSource final : public TokenFileSource {
 public:
  using TokenFileSource::TokenFileSource;
  std::int64_t samples() const override { return (run_->size() - 1) / length_; }
  bool goes_on(std::int64_t index) const override { return index > 0; }
  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples());
    copy(index * length_, length_, out);
  }
};

struct Window {
  std::int64_t start;
  std::int32_t count;  // inputs; as many targets
  bool goes_on;        // in the document of the window before
};

// Windows that end where their document ends.
class ApartSource final : public TokenFileSource {
 public:
  ApartSource(std::vector<Window> windows, std::shared_ptr<const TokenRun> run, std::int64_t length,
              std::int64_t vocabulary, bool is_checked)
      : TokenFileSource(std::move(run), length, vocabulary, is_checked), windows_(std::move(windows)) {}
  std::int64_t samples() const override { return static_cast<std::int64_t>(windows_.size()); }
  bool masks_losses() const override { return true; }
  std::int64_t losses(std::int64_t index) const override { return windows_[static_cast<std::size_t>(index)].count; }
  bool goes_on(std::int64_t index) const override { return windows_[static_cast<std::size_t>(index)].goes_on; }
  void sample(std::int64_t index, const SampleView& out) const override {
    assert(index >= 0 && index < samples());
    const Window& window = windows_[static_cast<std::size_t>(index)];
    copy(window.start, window.count, out);
    const auto size = static_cast<std::size_t>(window.count);
    std::ranges::fill(out.tokens.subspan(size), 0);
    std::ranges::fill(out.token_targets.subspan(size), -1);
  }

 private:
  std::vector<Window> windows_;
};

// Inputs [first, end), whose last target is at `end`.
void add_windows(std::int64_t first, std::int64_t end, std::int64_t length, std::vector<Window>& windows) {
  for (std::int64_t at = first; at < end; at += length)
    windows.push_back({at, static_cast<std::int32_t>(std::min(length, end - at)), at > first});
}

// A document starts with its end-of-text sign in llm.c's files, and ends with it in nanoGPT's. Both ways the sign is
// the first input of what follows it and the last target of what it follows, so that no token goes unlearned.
// Megatron's index tells the bounds: there the first token of a document is no target.
std::vector<Window> windows_of_documents(const TokenRun& run, std::int64_t length, std::int64_t end_of_text) {
  std::vector<Window> windows;
  std::int64_t open = 0;  // where the document starts that is not finished yet
  std::vector<std::int32_t> block;
  for (std::size_t i = 0; i < run.files().size(); ++i) {
    const TokenFile& file = *run.files()[i];
    const std::int64_t base = run.first_of(i), end = run.first_of(i + 1);
    if (file.format() == TokenFormat::megatron) {
      if (base > open) add_windows(open, base - 1, length, windows);
      open = base;
      for (const std::int64_t start : file.documents()) {
        add_windows(open, base + start - 1, length, windows);
        open = base + start;
      }
      add_windows(open, end - 1, length, windows);
      open = end;
      continue;
    }
    for (std::int64_t at = base; at < end;) {
      block.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 16, end - at)));
      run.copy(at, block);
      for (const std::int32_t id : block) {
        if (id == end_of_text && at > open) {
          add_windows(open, at, length, windows);
          open = at;
        }
        ++at;
      }
    }
  }
  add_windows(open, run.size() - 1, length, windows);
  return windows;
}

std::string files_in_words(const TokenRun& run) {
  const auto count = static_cast<std::int64_t>(run.files().size());
  return count == 1 ? file_name(run.files().front()->path()) : counted(count, "file");
}

class Opener {
 public:
  explicit Opener(const Settings& settings) : settings_(settings) {}

  Dataset open() {
    const DataSettings& data = settings_.data;
    const auto training = std::make_shared<const TokenRun>(data.train, "data.train", data.format);
    std::shared_ptr<const TokenRun> validation;
    if (!data.validation.empty())
      validation = std::make_shared<const TokenRun>(data.validation, "data.validation", data.format);
    if (!data.tokenizer.empty()) dataset_.tokenizer = open_tokenizer(data.tokenizer, "data.tokenizer");
    settle_vocabulary(*training, validation.get());
    dataset_.training = source(training, "data.train", data.train);
    if (validation) dataset_.validation = source(validation, "data.validation", data.validation);
    require_one_step(settings_, dataset_.training->samples(),
                     join(shown_path(data.train), " (", counted(training->size(), "token"), ") gives only ",
                          counted(dataset_.training->samples(), "window"), " of model.n_positions ",
                          settings_.model.gpt.n_positions));
    const TokenFile& first = *training->files().front();
    dataset_.description =
        join(files_in_words(*training), ": ", counted(training->size(), "token"), " (", name_of(first.format()),
             ", vocabulary ", dataset_.vocab_size, data.documents_apart ? ", documents apart" : "", "), ",
             parts_in_words(dataset_, "sample"), " of ", settings_.model.gpt.n_positions);
    return std::move(dataset_);
  }

 private:
  void settle_vocabulary(const TokenRun& training, const TokenRun* validation) {
    const std::int64_t asked = settings_.model.gpt.vocab_size;
    if (dataset_.tokenizer) {
      const std::int64_t known = dataset_.tokenizer->vocabulary_size();
      if (asked != 0 && asked < known) {
        throw UserError(join("model.vocab_size: ", asked, " is less than the ", known, " tokens of data.tokenizer ",
                             shown_path(settings_.data.tokenizer), "; use \"auto\" or ", known));
      }
      dataset_.vocab_size = asked == 0 ? known : asked;
    } else if (asked != 0) {
      dataset_.vocab_size = asked;
    } else {
      std::int64_t largest = training.largest();
      if (validation != nullptr) largest = std::max(largest, validation->largest());
      refuse_beyond_31_bits(largest, training, validation);
      dataset_.vocab_size = std::max<std::int64_t>(2, largest + 1);
      dataset_.notices.push_back(join("model.vocab_size: \"auto\" is ", dataset_.vocab_size,
                                      ", one more than the largest id in the token files; name data.tokenizer, or give "
                                      "the number, if the tokenizer has more"));
    }
  }

  void refuse_beyond_31_bits(std::int64_t largest, const TokenRun& training, const TokenRun* validation) const {
    constexpr std::int64_t most = 0x7fffffff;
    if (largest < most) return;
    for (const TokenRun* run : {&training, validation}) {
      if (run == nullptr) continue;
      if (const std::string complaint = run->complaint(0, run->size(), most); !complaint.empty())
        throw UserError(complaint);
    }
  }

  bool check(const TokenRun& run, std::int64_t vocabulary) const {
    return run.check_ids(vocabulary, bytes_checked_whole);
  }

  std::int64_t end_of_text() const {
    const std::int64_t asked = settings_.data.end_of_text;
    if (asked >= 0) return asked;
    if (dataset_.tokenizer) {
      if (const auto id = dataset_.tokenizer->end_of_text()) return *id;
      throw UserError(
          "data.documents: \"apart\" needs the id that stands between documents, and the tokenizer has no "
          "<|endoftext|>; give data.end_of_text");
    }
    return end_of_text_of_gpt2;
  }

  std::unique_ptr<Source> source(const std::shared_ptr<const TokenRun>& run, const std::string& key,
                                 const std::string& pattern) {
    const std::int64_t length = settings_.model.gpt.n_positions;
    const bool is_checked = check(*run, dataset_.vocab_size);
    if (!is_checked) {
      dataset_.notices.push_back(join(origin_of(key, pattern),
                                      ": of more than 4 GiB of tokens a part was checked against "
                                      "the vocabulary; the rest is as it is read"));
    }
    if (!settings_.data.documents_apart) {
      if (run->size() < length + 1) {
        throw UserError(join(origin_of(key, pattern), " is too short: ", counted(run->size(), "token"), "; at least ",
                             length + 1, " are needed for one sample with model.n_positions ", length,
                             "; give more tokens, or a smaller n_positions"));
      }
      return std::make_unique<JoinedSource>(run, length, dataset_.vocab_size, is_checked);
    }
    const auto is_megatron = [](const auto& file) { return file->format() == TokenFormat::megatron; };
    const bool needs_sign = !std::ranges::all_of(run->files(), is_megatron);
    std::vector<Window> windows = windows_of_documents(*run, length, needs_sign ? end_of_text() : -1);
    if (windows.empty()) {
      throw UserError(join(origin_of(key, pattern), " is too short: ", counted(run->size(), "token"),
                           ", and no document has two, of which the second could be predicted; give more"));
    }
    dataset_.bytes += static_cast<std::int64_t>(windows.size() * sizeof(Window));
    return std::make_unique<ApartSource>(std::move(windows), run, length, dataset_.vocab_size, is_checked);
  }

  const Settings& settings_;
  Dataset dataset_;
};

}  // namespace

Dataset open_token_files(const Settings& settings) {
  require_model(settings, "gpt", "tokens");
  return Opener(settings).open();
}

}  // namespace zt
