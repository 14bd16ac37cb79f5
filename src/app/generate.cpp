#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>

#include "app/signals.h"
#include "app/verbs.h"
#include "comm/mpi.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "data/terminal_text.h"
#include "inference/sampler.h"
#include "inference/setup.h"
#include "inference/text_stream.h"
#include "model/decoder.h"

namespace zt {

namespace {

struct GenerateLine {
  std::string checkpoint, prompt, ids, stop, tokenizer;
  std::vector<std::string> sets;
  std::int64_t max_tokens = 256;
  SamplerSettings sampler;
  bool json = false, quiet_prompt = false, no_cache = false;
  bool has_prompt = false, has_ids = false;
};

bool parse(GenerateLine& line, int argc, const char* const* argv) {
  CLI::App app("Writes on from a prompt with the model of a checkpoint, and streams the text to stdout.",
               "zerotrain generate");
  app.footer(
      "Examples:\n"
      "  zerotrain generate --checkpoint runs/gpt --prompt \"And it came to pass\" --max-tokens 100\n"
      "  zerotrain generate --checkpoint runs/gpt --prompt And --temperature 0.8 --top-k 40 --seed 7\n"
      "  zerotrain generate --checkpoint runs/gpt --prompt \"Q: who? A:\" --stop Q: --no-prompt --json");
  app.add_option("--checkpoint", line.checkpoint, "A checkpoint, or a run's directory: its newest")
      ->type_name("PATH")
      ->required();
  const CLI::Option* prompt = app.add_option("--prompt", line.prompt, "The text to go on from")->type_name("TEXT");
  const CLI::Option* ids =
      app.add_option(
             "--ids", line.ids,
             "In place of a text: the numbers of the tokens to go on from, as 1,2,3; numbers are then written, too")
          ->type_name("LIST");
  app.add_option("--tokenizer", line.tokenizer,
                 "For a checkpoint without one of its own: a tokenizer.json, vocab.json or merges.txt, a folder with "
                 "them, a tiktoken file, or bytes")
      ->type_name("PATH");
  app.add_option("--max-tokens", line.max_tokens, "Tokens to write at most")
      ->type_name("N")
      ->check(whole_number(0, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_option(
         "--temperature", line.sampler.temperature,
         "The tokens' scores are divided by it before one is drawn: the lower, the surer; 0: always the likeliest "
         "token")
      ->type_name("X")
      ->check(finite_number(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--top-k", line.sampler.top_k, "Draw from the K likeliest tokens only; 0: from all")
      ->type_name("K")
      ->check(whole_number(0))
      ->capture_default_str();
  app.add_option(
         "--top-p", line.sampler.top_p,
         "Draw from the fewest tokens, the likeliest first, whose probabilities together reach P; 1: from all; 0: "
         "from the likeliest one alone")
      ->type_name("P")
      ->check(finite_number(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", line.sampler.seed, "Of the draws: the same seed writes the same text")
      ->type_name("N")
      ->check(seed_number())
      ->capture_default_str();
  app.add_option("--stop", line.stop, "End where this text comes, and leave it out")->type_name("TEXT");
  app.add_flag("--no-prompt", line.quiet_prompt, "Leave the prompt out of what is written");
  app.add_option("-s,--set", line.sets,
                 "One key laid over the checkpoint's config: a.b.c=VALUE, as device.threads=4 or device.type=cuda")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--no-cache", line.no_cache,
               "Run all tokens anew for each new one: a check, and a measure of the cache");
  app.add_flag("--json", line.json, "One object at the end in place of the text: text, tokens, finished, times ...");
  if (!parse_verb(app, argc, argv)) return false;
  line.has_prompt = prompt->count() > 0;
  line.has_ids = ids->count() > 0;
  if (line.has_prompt && line.has_ids) throw UserError("--prompt and --ids exclude each other: give one of them");
  if (!line.has_prompt && !line.has_ids)
    throw UserError("generate needs a prompt: --prompt TEXT, or --ids LIST for a model of tokens without text");
  return true;
}

std::vector<std::int32_t> ids_from(const std::string& list, std::int64_t vocabulary) {
  std::vector<std::int32_t> ids;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    std::int32_t id = -1;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || id >= vocabulary || (next < end && *next != ',')) {
      throw UserError("--ids \"" + list + "\": numbers from 0 to " + std::to_string(vocabulary - 1) +
                      " with commas between them are needed");
    }
    ids.push_back(id);
    at = next < end ? next + 1 : next;
  }
  return ids;
}

// Where tokens go: the screen, or what the object at the end holds.
class Output {
 public:
  Output(const Tokenizer* tokenizer, const std::string& stop, bool streams)
      : tokenizer_(tokenizer), text_(stop), streams_(streams), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

  void prompt(const GenerateLine& line, const std::vector<std::int32_t>& tokens) {
    if (tokenizer_ == nullptr) {
      for (const std::int32_t token : tokens) say_number(token);
    } else {
      TextStream whole("");
      say(whole.add(line.prompt) + whole.finish());
    }
  }
  // False: the stop text has come.
  bool add(std::int32_t token) {
    if (tokenizer_ == nullptr) {
      say_number(token);
      return true;
    }
    keep(text_.add(tokenizer_->decode({&token, 1})));
    return !text_.stopped();
  }
  void finish() {
    if (tokenizer_ != nullptr) keep(text_.finish());
    say("\n");
  }
  const std::string& written() const { return written_; }

 private:
  void say_number(std::int32_t token) { say((numbers_++ > 0 ? "," : "") + std::to_string(token)); }
  void keep(const std::string& text) {
    written_ += text;
    say(text);
  }
  void say(const std::string& text) const {
    if (!streams_ || text.empty()) return;
    const std::string out = is_terminal_ ? shown_lines(text) : text;
    std::fwrite(out.data(), 1, out.size(), stdout);  // a text may hold bytes that are 0
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw RunError("cannot write to stdout");
  }

  const Tokenizer* tokenizer_;
  TextStream text_;
  bool streams_, is_terminal_;
  std::int64_t numbers_ = 0;
  std::string written_;
};

// UTF-8 without flaws, as JSON wants it.
std::string as_utf8(const std::string& text) {
  TextStream whole("");
  std::string clean = whole.add(text);
  return clean + whole.finish();
}

class Generation {
 public:
  explicit Generation(GenerateLine line)
      : line_(std::move(line)),
        checkpoint_(find_checkpoint(line_.checkpoint)),
        config_(config_of_checkpoint(checkpoint_, {}, line_.sets, false)) {
    const ModelSettings& model = config_.settings.model;
    if (model.type != "gpt") {
      throw UserError(checkpoint_.directory() + " holds an " + model.type +
                      ", which writes no text; evaluate measures it");
    }
    tokenizer_ = tokenizer_for(checkpoint_, line_.tokenizer, model.gpt.vocab_size);
    if (line_.has_prompt && tokenizer_ == nullptr) {
      throw UserError(checkpoint_.directory() +
                      " has no tokenizer: name the one that its model knows with --tokenizer PATH, or give tokens with "
                      "--ids LIST");
    }
    tokens_ = line_.has_ids ? ids_from(line_.ids, model.gpt.vocab_size) : tokenizer_->encode(line_.prompt);
    if (tokenizer_ != nullptr) end_of_text_ = tokenizer_->end_of_text();
    // A document begins behind the end of another one.
    if (tokens_.empty() && line_.has_prompt && end_of_text_) tokens_.push_back(*end_of_text_);
    if (tokens_.empty()) throw UserError("the prompt is empty: one token at least is needed to go on from");
    if (line_.has_ids) tokenizer_ = nullptr;
  }

  int run() {
    watch_stop_signals();
    for (const std::string& notice : config_.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
    tell_of_window();
    run_ranks_as_threads(1, 0, [&](Communicator& communicator) {
      with_model(
          config_, checkpoint_, 1, communicator,
          [&](InferenceModel& model, Device& device, Communicator&) { rehearse(model, device); },
          [&](InferenceModel& model, Device& device, Communicator&) { write(model, device); });
    });
    return stop_signal() == 0 ? 0 : 128 + stop_signal();
  }

 private:
  std::int64_t positions() const { return config_.settings.model.gpt.n_positions; }
  std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }

  void tell_of_window() const {
    if (length() + line_.max_tokens <= positions() + 1) return;
    std::fprintf(
        stderr,
        "notice: %lld tokens of prompt and %lld to write are more than the model's %lld positions: it sees the "
        "last ones only, at least %lld of them\n",
        static_cast<long long>(length()), static_cast<long long>(line_.max_tokens), static_cast<long long>(positions()),
        static_cast<long long>(positions() + 1 - window_start(positions() + 1, positions())));
  }

  // Every shape that will be run: the prompt, a step, and the window when it moves.
  void rehearse(InferenceModel& model, Device& device) const {
    const auto decode = [&](std::int64_t first, std::int64_t count) {
      model.model().decode(device, model.weights(), nullptr, first, count);
    };
    if (line_.no_cache) {
      model.model().next_token_logits(device, model.weights(), nullptr, positions());
      return;
    }
    decode(0, length() - window_start(length(), positions()));
    decode(0, positions() + 1 - window_start(positions() + 1, positions()));
    if (positions() > 1) decode(positions() - 1, 1);
  }

  void write(InferenceModel& model, Device& device) {
    const Buffer host = device.allocate_host(positions() * 4, "tokens");
    const Buffer on_device = device.allocate(positions() * 4, MemoryCategory::data, "tokens");
    const auto put_tokens = [&](std::span<const std::int32_t> tokens) -> const std::int32_t* {
      device.synchronize(Stream::compute);  // those before have been read
      std::copy(tokens.begin(), tokens.end(), host.as<std::int32_t>());
      device.copy(Stream::compute, on_device.data(), host.data(), static_cast<std::int64_t>(tokens.size_bytes()));
      return on_device.as<std::int32_t>();
    };
    Decoder decoder(device, model.model(), model.weights(), positions(), config_.settings.model.gpt.vocab_size,
                    line_.no_cache ? Decoder::Prompt::whole : Decoder::Prompt::exact, put_tokens);
    Sampler sampler(line_.sampler);
    Output output(tokenizer_.get(), line_.stop, !line_.json);
    const std::int64_t prompt_tokens = length();
    if (!line_.quiet_prompt) output.prompt(line_, tokens_);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point first_token = begin;
    const char* finished = "max_tokens";
    for (std::int64_t i = 0; i < line_.max_tokens; ++i) {
      if (stop_signal() != 0) {
        finished = "signal";
        break;
      }
      if (line_.no_cache) decoder.forget();
      tokens_.push_back(sampler.pick(decoder.logits_after(tokens_), length()));
      if (i == 0) first_token = Clock::now();
      if (end_of_text_ && tokens_.back() == *end_of_text_) {
        finished = "end_of_text";
        break;
      }
      if (!output.add(tokens_.back())) {
        finished = "stop";
        break;
      }
    }
    output.finish();
    if (!line_.json) return;
    const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
    const double steps = seconds(Clock::now() - first_token);  // of the tokens behind the first
    const std::int64_t written = length() - prompt_tokens;
    nlohmann::ordered_json object = {{"checkpoint", checkpoint_.directory()},
                                     {"prompt_tokens", prompt_tokens},
                                     {"tokens", std::vector(tokens_.begin() + prompt_tokens, tokens_.end())},
                                     {"finished", finished},
                                     {"seed", line_.sampler.seed},
                                     {"prompt_seconds", seconds(first_token - begin)}};
    if (written > 1) object["tokens_per_second"] = static_cast<double>(written - 1) / steps;
    if (tokenizer_ != nullptr) {
      object["prompt"] = as_utf8(line_.prompt);
      object["text"] = output.written();
    }
    std::puts(json_text(object, 2).c_str());
  }

  GenerateLine line_;
  NativeCheckpoint checkpoint_;
  ResolvedConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::int32_t> tokens_;
  std::optional<std::int32_t> end_of_text_;
};

}  // namespace

int generate(int argc, const char* const* argv) {
  GenerateLine line;
  if (!parse(line, argc, argv)) return 0;
  if (launched_by_mpi()) throw UserError("generate runs in one process: start it without mpirun");
  return Generation(std::move(line)).run();
}

}  // namespace zt
