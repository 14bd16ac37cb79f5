#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "app/evaluated_data.h"
#include "app/launcher.h"
#include "app/resolve_options.h"
#include "app/signals.h"
#include "app/verbs.h"
#include "checkpoint/open_weights.h"
#include "comm/mpi.h"
#include "comm/threads.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/json_text.h"
#include "inference/evaluation.h"
#include "inference/setup.h"
#include "train/plan.h"
#include "train/words.h"

namespace zt {

namespace {

struct EvaluateLine {
  std::string checkpoint, tokenizer, part = "validation";
  std::vector<std::string> configs, sets;
  std::int64_t stride = 0;  // 0: n_positions
  int ranks = 1;
  bool json = false;
};

bool parse(EvaluateLine& line, int argc, const char* const* argv) {
  CLI::App app("Measures a model on all validation data of its config, or on other data.", "zerotrain evaluate");
  app.footer(
      "Examples:\n"
      "  zerotrain evaluate --checkpoint runs/gpt\n"
      "  zerotrain evaluate --checkpoint runs/gpt --set data.path=book.txt --part all --stride 32 --json\n"
      "  zerotrain evaluate --checkpoint gpt-imported --config configs/gpt.json --tokenizer bytes --ranks 2");
  app.add_option("--checkpoint", line.checkpoint,
                 "A checkpoint, or a run's directory: its newest. Without it: the weights that model.pretrained names")
      ->type_name("PATH");
  app.add_option("-c,--config", line.configs,
                 "Config files, laid over that of the checkpoint (other data), or the whole config without one")
      ->type_name("FILE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("-s,--set", line.sets, "One key, after all files: a.b.c=VALUE, as data.path=other.txt")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--tokenizer", line.tokenizer,
                 "For weights that came without one: the tokenizer that they were trained with, in place of "
                 "data.tokenizer: a tokenizer.json, vocab.json or merges.txt, a folder with them, a tiktoken file, or "
                 "bytes")
      ->type_name("PATH");
  app.add_option("--part", line.part, "Which part of the data: validation, training, or all (of a running text)")
      ->check(CLI::IsMember({"validation", "training", "all"}))
      ->capture_default_str();
  app.add_option("--stride", line.stride,
                 "Of a running text or token files: windows start N tokens apart, and of each but the first only the "
                 "last N positions count; from 1 to n_positions; without it n_positions, which is no overlap")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("-r,--ranks", line.ranks, "Processes of this machine that share the work and its cores")
      ->type_name("N")
      ->check(local_ranks())
      ->capture_default_str();
  app.add_flag("--json", line.json, "One object in place of the lines, with all digits");
  return parse_verb(app, argc, argv);
}

// Where the weights are that are measured.
struct Measured {
  std::unique_ptr<NativeCheckpoint> checkpoint;  // one of them
  std::unique_ptr<WeightSource> pretrained;
  ResolvedConfig config;

  std::string name() const { return checkpoint ? checkpoint->directory() : pretrained->description(); }
};

Measured open_checkpoint(const EvaluateLine& line) {
  Measured measured;
  measured.checkpoint = std::make_unique<NativeCheckpoint>(find_checkpoint(line.checkpoint));
  measured.config = config_of_checkpoint(*measured.checkpoint, line.configs, line.sets);
  return measured;
}

// The weights that a config's model.pretrained names, as a run would begin with them.
Measured open_pretrained_model(const EvaluateLine& line) {
  const std::string what_to_give =
      "evaluate needs weights: name a checkpoint or a run's directory with --checkpoint PATH, or give a config whose "
      "model.pretrained names weights (a Hugging Face directory, a model file of llm.c, a checkpoint)";
  if (line.configs.empty()) throw UserError(what_to_give);
  ResolveOptions options = resolve_options_here();
  options.base = Json{{"device", {{"type", "cpu"}}}};
  options.resumed = ResumedBatch{};
  Measured measured;
  measured.config = resolve_config(line.configs, line.sets, 1, options);
  const Settings& settings = measured.config.settings;
  if (settings.model.pretrained.empty())
    throw UserError(what_to_give + "; in " + line.configs.back() + " there is no model.pretrained");
  refuse_absurd_sizes(settings);
  measured.pretrained = open_pretrained(settings.model);
  return measured;
}

// With the tokenizer that came with the weights; null: none did.
std::unique_ptr<Tokenizer> own_tokenizer(const Measured& measured) {
  if (measured.checkpoint) return tokenizer_of(*measured.checkpoint);
  const std::optional<StoredTokenizer> stored = measured.pretrained->tokenizer();
  return !stored || stored->name.empty() ? nullptr : make_tokenizer(stored->name, stored->definition);
}

// Weights that another program has trained may know a text without saying in which tokens.
bool are_of_others(const Measured& measured) {
  return !measured.checkpoint || !measured.checkpoint->manifest().config.contains("data");
}

EvaluatedModel described(const Measured& measured, const std::string& tokenizer) {
  EvaluatedModel model{.name = measured.name(), .tokenizer = own_tokenizer(measured), .tokenizer_is_known = true};
  if (!tokenizer.empty()) {
    if (model.tokenizer != nullptr) throw UserError(has_its_own_tokenizer(model.name, *model.tokenizer));
    if (measured.config.settings.model.type != "gpt")
      throw UserError("--tokenizer is for models of text, and " + model.name + " is an " +
                      measured.config.settings.model.type);
    model.tokenizer = named_tokenizer(tokenizer, measured.config.settings.model.gpt.vocab_size);
  } else if (model.tokenizer == nullptr) {
    model.tokenizer_is_known = !are_of_others(measured);
  }
  return model;
}

void print(const Evaluation& result, const Measured& measured, const ResolvedConfig& config, const EvaluatedData& data,
           const EvaluateLine& line) {
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
  std::string step;
  if (measured.checkpoint) {
    object["checkpoint"] = measured.checkpoint->directory();
    object["step"] = measured.checkpoint->manifest().step;
    step = "step " + std::to_string(measured.checkpoint->manifest().step) + ", ";
  } else {
    object["pretrained"] = settings.model.pretrained;
  }
  object["precision"] = settings.precision.preset;
  if (line.json) {
    std::puts(json_text(object, 2).c_str());
    return;
  }
  std::printf("%s, %s%s\n%s\n", measured.name().c_str(), step.c_str(), settings.precision.preset.c_str(),
              data.description.c_str());
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
  const Measured measured = line.checkpoint.empty() ? open_pretrained_model(line) : open_checkpoint(line);
  ResolvedConfig config = measured.config;
  for (const std::string& notice : config.notices) std::fprintf(stderr, "notice: %s\n", notice.c_str());
  Settings of_data = config.settings;
  if (!line.tokenizer.empty()) of_data.data.tokenizer = line.tokenizer;
  const EvaluatedData data = open_evaluated_data(of_data, described(measured, line.tokenizer), line.part, line.stride);
  const std::int64_t rows = config.settings.batch.micro;
  const auto load = [&](InferenceWeights& weights) {
    if (measured.checkpoint) return weights.load(*measured.checkpoint);
    measured.pretrained->verify();
    weights.load(*measured.pretrained);
  };
  const auto rank = [&](Communicator& communicator) {
    std::optional<Evaluation> result;
    with_model(
        config, load, rows, communicator,
        [&](InferenceModel& model, Device& device, Communicator&) {
          rehearse_evaluation(model, device, data.source().shape(), rows);
        },
        [&](InferenceModel& model, Device& device, Communicator& devices) {
          result = evaluate_all(model, device, devices, data.source(), rows, data.tokenizer.get(),
                                [] { return stop_signal() != 0; });
        });
    if (!result) return 128 + stop_signal();
    if (communicator.rank() == 0) print(*result, measured, config, data, line);
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
