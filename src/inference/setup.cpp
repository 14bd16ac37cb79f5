#include "inference/setup.h"

#include <algorithm>
#include <numeric>

#include "comm/agree.h"
#include "comm/counting.h"
#include "core/available_memory.h"
#include "core/errors.h"
#include "core/process.h"
#include "data/message_text.h"
#include "device/counting/counting_device.h"
#include "train/agreements.h"
#include "train/plan.h"
#include "train/words.h"

namespace zt {

namespace {

// Whether every key of `section` has the same value in `whole`, which may have more.
bool holds_all_of(const nlohmann::ordered_json& whole, const nlohmann::ordered_json& section) {
  for (const auto& [key, value] : section.items()) {
    const auto found = whole.find(key);
    if (found == whole.end() || *found != value) return false;
  }
  return true;
}

// What a checkpoint that was imported does not say.
void complete(nlohmann::ordered_json& config, bool uses_data) {
  if (!config.contains("train_batch_size") && !config.contains("train_micro_batch_size_per_gpu"))
    config["train_micro_batch_size_per_gpu"] = 1;
  if (!config.contains("data") && !uses_data)
    config["data"] = {{"type", "synthetic"}, {"task", "tokens"}, {"samples", 10}};  // the fewest that a config may have
}

}  // namespace

ResolvedConfig config_of_checkpoint(const NativeCheckpoint& checkpoint, const std::vector<std::string>& files,
                                    const std::vector<std::string>& sets, bool uses_data) {
  const Manifest& manifest = checkpoint.manifest();
  ResolveOptions options;
  options.base = manifest.config;
  (*options.base)["device"] = {{"type", "cpu"}};
  complete(*options.base, uses_data);
  options.resumed = ResumedBatch{};
  ResolvedConfig config = resolve_config(files, sets, 1, options);
  const auto model = manifest.config.find("model");
  if (model == manifest.config.end() || !holds_all_of(config.json.at("model"), *model)) {
    throw UserError(checkpoint.directory() +
                    ": the config describes another model than the checkpoint holds; leave out what changes the "
                    "section model");
  }
  const auto micro = manifest.config.find("train_micro_batch_size_per_gpu");
  if (micro != manifest.config.end() && micro->is_number_integer())
    config.settings.batch.micro = std::max<std::int64_t>(1, micro->get<std::int64_t>());
  refuse_absurd_sizes(config.settings);
  return config;
}

std::unique_ptr<Tokenizer> tokenizer_of(const NativeCheckpoint& checkpoint) {
  const auto& tokenizer = checkpoint.manifest().tokenizer;
  if (!tokenizer) return nullptr;
  return make_tokenizer(tokenizer->name, checkpoint.tokenizer_definition());
}

std::unique_ptr<Tokenizer> named_tokenizer(const std::string& path, std::int64_t vocabulary) {
  std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(path, "--tokenizer");
  if (tokenizer->vocabulary_size() > vocabulary) {
    throw UserError("--tokenizer " + shown_path(path) + " has " + std::to_string(tokenizer->vocabulary_size()) +
                    " tokens, and the model knows " + std::to_string(vocabulary) +
                    ": name the tokenizer that it was trained with");
  }
  return tokenizer;
}

std::string has_its_own_tokenizer(const std::string& weights, const Tokenizer& own) {
  return "--tokenizer is for weights without one, and " + weights + " has its own (" + std::string(own.name()) +
         "): leave it out";
}

std::unique_ptr<Tokenizer> tokenizer_for(const NativeCheckpoint& checkpoint, const std::string& path,
                                         std::int64_t vocabulary) {
  std::unique_ptr<Tokenizer> own = tokenizer_of(checkpoint);
  if (path.empty()) return own;
  if (own != nullptr) throw UserError(has_its_own_tokenizer(checkpoint.directory(), *own));
  return named_tokenizer(path, vocabulary);
}

InferenceModel::InferenceModel(const Settings& settings, Device& device, std::int64_t rows)
    : precision_(make_precision(settings.precision, 1)),
      model_(make_model(settings, precision_, device, rows, ModelUse::inference)),
      weights_(device, model_->units(), precision_) {}

namespace {

struct Rehearsed {
  std::vector<Operation> operations;
  std::int64_t bytes = 0;
};

Rehearsed rehearse(const Settings& settings, std::int64_t rows, const Communicator& communicator,
                   const UseModel& rehearsal) {
  CountingDevice device(scratch_of_device(settings.device), "counting");
  CountingCommunicator counting(communicator.rank(), communicator.size(), communicator.size());
  InferenceModel model(settings, device, rows);
  rehearsal(model, device, counting);
  device.reserve_workspace();
  const auto memory = device.ledger().current();
  return {device.operations(), std::accumulate(memory.begin(), memory.end(), std::int64_t{0})};
}

}  // namespace

void with_model(ResolvedConfig& config, const NativeCheckpoint& checkpoint, std::int64_t rows,
                Communicator& communicator, const UseModel& rehearsal, const UseModel& use) {
  with_model(
      config, [&](InferenceWeights& weights) { weights.load(checkpoint); }, rows, communicator, rehearsal, use);
}

void with_model(ResolvedConfig& config, const LoadWeights& load, std::int64_t rows, Communicator& communicator,
                const UseModel& rehearsal, const UseModel& use) {
  const Neighbours neighbours = find_neighbours(communicator);
  const cpu::InstructionLevel level = agree_on_instruction_set(communicator, config.settings.device.instruction_set);
  const ComputeChoice choice = choose_compute(communicator, config.settings.device, neighbours);
  int threads = config.settings.device.threads;
  if (threads == 0) threads = std::max(1, allowed_core_count() / neighbours.sharing_cores);
  settle(config, {.device_type = choice.type,
                  .threads = threads,
                  .communicator = choice.settled_communicator(communicator.size()),
                  .ranks_per_node = config.settings.device.ranks_per_node,
                  .instruction_set = std::string(cpu::name_of(level))});
  const Rehearsed rehearsed = rehearse(config.settings, rows, communicator, rehearsal);
  all_or_none(communicator, [&] {
    const std::int64_t ranks = choice.on_gpu() ? choice.sharing : neighbours.on_machine;
    const std::int64_t available = choice.on_gpu() ? choice.gpu.free : available_memory_bytes();
    if (rehearsed.bytes > available / std::max<std::int64_t>(1, ranks)) {
      throw UserError("the model needs " + bytes_in_words(rehearsed.bytes) +
                      " for weights and activations on each of " + std::to_string(ranks) + " rank(s), and only " +
                      bytes_in_words(available) + " are free");
    }
  });
  const cpu::CpuDeviceOptions cpu_options{.sharing_cores = neighbours.sharing_cores};
  Compute compute(choice, config.settings, communicator, rehearsed.operations, &cpu_options);
  InferenceModel model(config.settings, compute.device(), rows);
  all_or_none<RunError>(communicator, [&] { load(model.weights()); });
  use(model, compute.device(), compute.communicator());
}

}  // namespace zt
