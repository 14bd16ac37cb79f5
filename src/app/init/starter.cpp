#include "app/init/starter.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/init/starter_data.h"
#include "app/resolve_options.h"
#include "config/resolve.h"
#include "core/errors.h"
#include "core/json.h"
#include "data/source.h"

namespace zt {

namespace {

namespace fs = std::filesystem;

struct GptSize {
  const char* name;
  int layers, heads, width, positions, batch;
  double learning_rate, initializer_range;
};
// The last four are GPT-2's. A narrow model wants larger initial weights and rates.
constexpr std::array gpt_sizes = {GptSize{"tiny", 2, 2, 64, 64, 8, 3e-3, 0.06},
                                  GptSize{"small", 4, 4, 128, 128, 8, 3e-3, 0.06},
                                  GptSize{"medium", 6, 6, 384, 256, 32, 1e-3, 0.02},
                                  GptSize{"gpt2", 12, 12, 768, 1024, 32, 6e-4, 0.02},
                                  GptSize{"gpt2-medium", 24, 16, 1024, 1024, 32, 3e-4, 0.02},
                                  GptSize{"gpt2-large", 36, 20, 1280, 1024, 32, 2.5e-4, 0.02},
                                  GptSize{"gpt2-xl", 48, 25, 1600, 1024, 32, 2e-4, 0.02}};

struct MlpSize {
  const char* name;
  std::vector<int> hidden;
};
const std::vector<MlpSize>& mlp_sizes() {
  static const std::vector<MlpSize> sizes = {
      {"tiny", {32}}, {"small", {256, 128}}, {"medium", {1024, 512}}, {"large", {4096, 2048, 1024}}};
  return sizes;
}

template <typename Sizes>
const auto& size_named(const Sizes& sizes, const std::string& name, const std::string& model) {
  std::string known;
  for (const auto& size : sizes) {
    if (size.name == name) return size;
    known += (known.empty() ? "" : ", ") + std::string(size.name);
  }
  throw UserError("--size " + name + ": of the model " + model + " there are " + known);
}

// What was not said follows from what was.
void settle_kinds(StarterRequest& request) {
  const auto is_of_gpt = [](const std::string& data) { return data == "text" || data == "tokens"; };
  if (request.data.empty() && !request.path.empty()) {
    request.data = kind_of_data(request.path);
    if (request.data.empty())
      throw UserError("--path " + request.path +
                      ": its name does not tell of what kind the data are; say it with "
                      "--data text, tokens, idx or csv");
  }
  if (request.model.empty()) request.model = request.data == "csv" || request.data == "idx" ? "mlp" : "gpt";
  if (request.data.empty()) request.data = request.model == "gpt" ? "text" : "synthetic";
  if (request.data != "synthetic" && is_of_gpt(request.data) != (request.model == "gpt")) {
    throw UserError("--data " + request.data + " is for --model " + (request.model == "gpt" ? "mlp" : "gpt") +
                    ": a gpt learns text, tokens or synthetic data, an mlp csv, idx or synthetic data");
  }
  if (request.data == "synthetic" && !request.path.empty())
    throw UserError("--path does not go with --data synthetic, which is made up and needs no file");
  if (!request.target.empty() && request.data != "csv")
    throw UserError("--target goes with --data csv: a column of the table");
  if (request.output.empty()) request.output = request.model + ".json";
}

void add_start(CommentedConfig& config, int batch, double learning_rate, int steps) {
  config.set("train_batch_size", batch);
  config.set("gradient_clipping", 1.0);
  config.set("steps_per_print", 20);
  config.set("zero_optimization.stage", 2);
  config.set("bf16.enabled", false);
  config.set("optimizer.type", "AdamW");
  config.set("optimizer.params.lr", learning_rate);
  config.set("optimizer.params.weight_decay", 0.01);
  config.set("scheduler.type", "WarmupCosineLR");
  config.set("scheduler.params.warmup_num_steps", steps / 20);
  config.set("scheduler.params.total_num_steps", steps);
  config.set("scheduler.params.cos_min_ratio", 0.05);
}

void add_training(Starter& starter, bool has_validation, int steps) {
  starter.config.set("training.max_steps", steps);
  starter.config.set("training.seed", 1234);
  starter.config.set("training.eval_interval", has_validation ? steps / 10 : 0);
  starter.config.set("training.eval_steps", 10);
  starter.config.set("training.checkpoint_interval", steps / 4);
  starter.config.set("training.output_dir", "runs/" + fs::path(starter.output).stem().string());
}

void add_gpt(Starter& starter, const std::string& size_name, int steps) {
  const GptSize& size = size_named(gpt_sizes, size_name, "gpt");
  CommentedConfig& config = starter.config;
  add_start(config, size.batch, size.learning_rate, steps);
  config.set("model.type", "gpt");
  config.set("model.n_layer", size.layers);
  config.set("model.n_head", size.heads);
  config.set("model.n_embd", size.width);
  config.set("model.n_positions", size.positions);
  config.set("model.vocab_size", starter.data == "synthetic" ? Json(256) : Json("auto"));
  config.set("model.initializer_range", size.initializer_range);
  starter.chosen.push_back("model: gpt, " + size_name + ": " + std::to_string(size.layers) + " layers, " +
                           std::to_string(size.heads) + " heads, " + std::to_string(size.width) + " wide, context " +
                           std::to_string(size.positions));
}

void add_mlp(Starter& starter, const std::string& size_name, const StarterData& data, int steps) {
  const MlpSize& size = size_named(mlp_sizes(), size_name, "mlp");
  CommentedConfig& config = starter.config;
  add_start(config, 32, 1e-3, steps);
  Json layers = Json::array({data.inputs});
  for (const int width : size.hidden) layers.push_back(width);
  layers.push_back(data.outputs);
  config.set("model.type", "mlp");
  config.set("model.layers", layers);
  config.set("model.activation", "relu");
  config.set("model.loss", data.has_classes ? "cross_entropy" : "mse");
  starter.chosen.push_back("model: mlp, " + size_name + ": layers " + layers.dump() + ", " +
                           (data.has_classes ? "cross entropy over classes" : "mean of squares"));
}

// Opens the data as a run would. Of short ones shorter sequences and smaller batches are tried, for a step and an
// evaluation want some; then the last reason why not is thrown.
void fit_to_data(Starter& starter, const StarterData& data) {
  std::vector<std::string> sets;
  for (const auto& [key, path] : data.absolute) sets.push_back(key + "=" + path.get<std::string>());
  constexpr std::int64_t small_sequence = 8;
  const auto halve = [&](const char* key, std::int64_t least) {
    const Json* value = starter.config.find(key);
    if (value == nullptr || value->get<std::int64_t>() < 2 * least) return false;
    starter.config.set(key, value->get<std::int64_t>() / 2);
    return true;
  };
  for (;;) {
    try {
      ResolveOptions options = resolve_options_here();
      options.base = starter.config.json();
      open_dataset(resolve_config({}, sets, 1, options).settings);
      return;
    } catch (const ConfigError&) {
      throw;
    } catch (const UserError&) {
      std::error_code error;
      const auto bytes =
          fs::file_size(data.absolute.empty() ? "" : data.absolute.front().second.get<std::string>(), error);
      constexpr std::uintmax_t small_file = 1 << 20;  // larger ones fail for other reasons
      if (error || bytes > small_file) throw;
      if (!halve("model.n_positions", small_sequence) && !halve("train_batch_size", 1)) throw;
    }
  }
}

}  // namespace

const std::vector<std::string>& starter_sizes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const GptSize& size : gpt_sizes) all.emplace_back(size.name);
    for (const MlpSize& size : mlp_sizes()) {
      if (std::find(all.begin(), all.end(), size.name) == all.end()) all.emplace_back(size.name);
    }
    return all;
  }();
  return names;
}

Starter make_starter(const StarterRequest& asked) {
  StarterRequest request = asked;
  settle_kinds(request);
  Starter starter;
  starter.model = request.model;
  starter.data = request.data;
  starter.output = request.output;
  const StarterData data = look_at_data(request.data, request.model, request.path, request.target, request.output);
  starter.data_are_there = data.is_there;
  if (!data.is_there && !request.path.empty()) {
    throw UserError("--path " + request.path +
                    ": there is no such file; without --path the config says where the data "
                    "are to be put");
  }
  constexpr int steps = 1000;
  if (request.model == "gpt") {
    add_gpt(starter, request.size, steps);
  } else {
    add_mlp(starter, request.size, data, steps);
  }
  starter.config.set("data.type", request.data);
  for (const auto& [key, value] : data.keys) starter.config.set(key, value);
  for (const auto& [key, text] : data.remarks) starter.config.remark(key, text);
  add_training(starter, data.has_validation, steps);
  if (request.model == "gpt" && request.data == "text") starter.config.set("training.sample_prompt", "The ");
  starter.chosen.insert(starter.chosen.end(), data.chosen.begin(), data.chosen.end());
  if (data.is_there) {
    const auto number = [&](const char* key) {
      const Json* value = starter.config.find(key);
      return value == nullptr ? std::int64_t{0} : value->get<std::int64_t>();
    };
    const std::int64_t batch = number("train_batch_size");
    const std::int64_t length = number("model.n_positions");
    fit_to_data(starter, data);
    if (number("train_batch_size") != batch || number("model.n_positions") != length) {
      starter.chosen.push_back("the data are few: a step takes " + std::to_string(number("train_batch_size")) +
                               " samples" +
                               (length > 0 ? " of " + std::to_string(number("model.n_positions")) + " tokens" : ""));
    }
  }
  return starter;
}

}  // namespace zt
