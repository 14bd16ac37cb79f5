#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "app/launcher.h"
#include "app/signals.h"
#include "app/verbs.h"
#include "comm/mpi.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "data/input_file.h"
#include "data/message_text.h"
#include "data/open.h"
#include "inference/evaluation.h"
#include "inference/setup.h"
#include "inference/sliding_source.h"
#include "train/words.h"

namespace zt {

namespace {

struct EvaluateLine {
  std::string checkpoint, part = "validation";
  std::vector<std::string> configs, sets;
  std::int64_t stride = 0;  // 0: n_positions
  int ranks = 1;
  bool json = false;
};

bool parse(EvaluateLine& line, int argc, const char* const* argv) {
  CLI::App app("Measures a checkpoint's model on all validation data of its config, or on other data.",
               "zerotrain evaluate");
  app.add_option("--checkpoint", line.checkpoint, "A checkpoint, or a run's directory: its newest")
      ->type_name("PATH")
      ->required();
  app.add_option("-c,--config", line.configs, "Config files laid over the checkpoint's: other data")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("-s,--set", line.sets, "One key, after all files: a.b.c=VALUE, as data.path=other.txt")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--part", line.part, "Which part of the data: validation, training, or all of a running text")
      ->check(CLI::IsMember({"validation", "training", "all"}))
      ->capture_default_str();
  app.add_option("--stride", line.stride,
                 "Windows of a running text start so many tokens apart, and of each only the last N positions count "
                 "(n_positions: no overlap)")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("-r,--ranks", line.ranks, "Local processes that share the work")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_flag("--json", line.json, "One object with all digits");
  return parse_verb(app, argc, argv);
}

// What is evaluated, and what its tokens mean.
struct Subject {
  std::unique_ptr<Source> windows;  // or rows
  std::unique_ptr<Source> sliding;  // over them
  std::unique_ptr<Tokenizer> tokenizer;
  std::string description;

  const Source& source() const { return sliding ? *sliding : *windows; }
};

// A running text in the tokens that the model knows, whatever else the text consists of.
Subject open_running_text(const Settings& settings, std::unique_ptr<Tokenizer> tokenizer, const std::string& part) {
  const std::string& path = settings.data.path;
  const std::string origin = origin_of("data.path", path);
  const InputFile file(path, "data.path", "a text file");
  const auto tokens = std::make_shared<const TokenArray>(tokenizer->encode_corpus(file.bytes(), origin));
  const std::int64_t validation = validation_share(tokens->size(), settings.data.validation_fraction);
  const std::int64_t first = part == "validation" ? tokens->size() - validation : 0;
  const std::int64_t count = part == "training" ? tokens->size() - validation : tokens->size() - first;
  const std::int64_t length = settings.model.gpt.n_positions;
  if (count < length + 1) {
    throw UserError(origin + ": the " + part + " part has " + counted(count, "token") + ", and one window needs " +
                    std::to_string(length + 1) + " (model.n_positions " + std::to_string(length) +
                    "); data.validation_fraction is " + shown(settings.data.validation_fraction) +
                    ": raise it, use --part all, or a longer text");
  }
  return {.windows = make_window_source(tokens, first, count, length),
          .sliding = nullptr,
          .tokenizer = std::move(tokenizer),
          .description = file_name(path) + ", " + part + " part: " + counted(count, "token")};
}

// Token files need not say which tokenizer they were made with: it is then taken to be the model's own.
Subject open_other(const Settings& settings, const NativeCheckpoint& checkpoint, std::unique_ptr<Tokenizer> own,
                   const std::string& part) {
  if (part == "all") throw UserError("--part all is for a running text; use validation or training");
  Dataset dataset = open_dataset(settings);
  const bool is_unnamed = settings.data.type == "tokens" && dataset.tokenizer == nullptr;
  const bool both = own != nullptr && dataset.tokenizer != nullptr;
  if (both ? own->name() != dataset.tokenizer->name() || own->definition() != dataset.tokenizer->definition()
           : !is_unnamed && (own != nullptr || dataset.tokenizer != nullptr)) {
    throw UserError("data: its tokens are not those that the model of " + checkpoint.directory() +
                    " was trained on: the tokenizer is another one");
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

Subject open_subject(const ResolvedConfig& config, const NativeCheckpoint& checkpoint, const EvaluateLine& line) {
  const Settings& settings = config.settings;
  std::unique_ptr<Tokenizer> own = tokenizer_of(checkpoint);
  const bool runs_on = settings.data.type == "text" && settings.data.format != "prompt_completion";
  if (line.stride > 0 && !runs_on) throw UserError("--stride is for a running text: the data are separate samples");
  if (!runs_on || own == nullptr) return open_other(settings, checkpoint, std::move(own), line.part);
  Subject subject = open_running_text(settings, std::move(own), line.part);
  const std::int64_t length = settings.model.gpt.n_positions;
  if (line.stride > length) {
    throw UserError("--stride " + std::to_string(line.stride) + " leaves tokens out: at most model.n_positions, " +
                    std::to_string(length) + ", which is no overlap");
  }
  if (line.stride > 0 && line.stride < length)
    subject.sliding = std::make_unique<SlidingSource>(*subject.windows, line.stride);
  return subject;
}

void print(const Evaluation& result, const NativeCheckpoint& checkpoint, const ResolvedConfig& config,
           const Subject& subject, const EvaluateLine& line) {
  const Settings& settings = config.settings;
  const bool is_gpt = settings.model.type == "gpt";
  nlohmann::ordered_json object;
  put_number(object, "loss", result.loss);
  if (is_gpt) put_number(object, "perplexity", std::exp(result.loss));
  const bool has_bytes = result.bytes && *result.bytes > 0;
  if (has_bytes) {
    put_number(
        object, "bits_per_byte",
        result.loss * static_cast<double>(result.counted) / std::numbers::ln2 / static_cast<double>(*result.bytes));
    object["bytes"] = *result.bytes;
  }
  if (result.accuracy) object["accuracy"] = *result.accuracy;
  object[is_gpt ? "tokens" : "rows"] = result.counted;
  if (is_gpt) {
    object["windows"] = result.samples;
    if (line.stride > 0) object["stride"] = line.stride;
  }
  object["part"] = line.part;
  object["checkpoint"] = checkpoint.directory();
  object["step"] = checkpoint.manifest().step;
  object["precision"] = settings.precision.preset;
  if (line.json) {
    std::puts(json_text(object, 2).c_str());
    return;
  }
  std::printf("%s, step %lld, %s\n%s\n", checkpoint.directory().c_str(),
              static_cast<long long>(checkpoint.manifest().step), settings.precision.preset.c_str(),
              subject.description.c_str());
  for (const auto& [name, value] : object.items()) {
    if (value.is_number() && name != "step") std::printf("%-14s %s\n", name.c_str(), json_text(value).c_str());
    if (value.is_null()) std::printf("%-14s not finite\n", name.c_str());
  }
}

}  // namespace

int evaluate(int argc, const char* const* argv) {
  EvaluateLine line;
  if (!parse(line, argc, argv)) return 0;
  if (launched_by_mpi()) throw UserError("evaluate starts its ranks itself: use --ranks N without mpirun");
  const NativeCheckpoint checkpoint(find_checkpoint(line.checkpoint));
  ResolvedConfig config = config_of_checkpoint(checkpoint, line.configs, line.sets);
  for (const std::string& notice : config.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  const Subject subject = open_subject(config, checkpoint, line);
  const std::int64_t rows = config.settings.batch.micro;
  const auto rank = [&](Communicator& communicator) {
    std::optional<Evaluation> result;
    with_model(
        config, checkpoint, rows, communicator,
        [&](InferenceModel& model, Device& device, Communicator&) {
          rehearse_evaluation(model, device, subject.source().shape(), rows);
        },
        [&](InferenceModel& model, Device& device, Communicator& devices) {
          result = evaluate_all(model, device, devices, subject.source(), rows, subject.tokenizer.get(),
                                [] { return stop_signal() != 0; });
        });
    if (!result) return 128 + stop_signal();
    if (communicator.rank() == 0) print(*result, checkpoint, config, subject, line);
    return 0;
  };
  if (line.ranks == 1) {
    watch_stop_signals();
    int code = 0;
    run_ranks_as_threads(1, 0, [&](Communicator& communicator) { code = rank(communicator); });
    return code;
  }
  hold_stop_signals();
  return launch_local_ranks(line.ranks, [&](Communicator& communicator) {
    watch_stop_signals();
    return rank(communicator);
  });
}

}  // namespace zt
