#include "train/resume.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "checkpoint/checksum.h"
#include "config/difference.h"
#include "core/errors.h"
#include "core/json.h"
#include "core/precision.h"

namespace zt {

namespace {

bool is_one_of(const std::string& path, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return path == name || (path.size() > name.size() && path.starts_with(name) && path[name.size()] == '.');
  });
}

// Keys of the model that change nothing of what its weights mean.
bool leaves_model_as_it_is(const std::string& path) {
  return is_one_of(path, {"model.freeze", "model.embd_pdrop", "model.resid_pdrop", "model.attn_pdrop",
                          "model.initializer_range", "model.pretrained"});
}

std::vector<ConfigDifference> differences(const Manifest& manifest, const ResolvedConfig& config) {
  return config_differences(manifest.config, config.json);
}

void require_same_vocabulary(const Manifest& manifest, const Dataset& dataset) {
  if (!manifest.tokenizer || dataset.tokenizer == nullptr) return;
  if (manifest.tokenizer->name != dataset.tokenizer->name()) {
    throw UserError("data.tokenizer: " + std::string(dataset.tokenizer->name()) +
                    ", and the checkpoint was trained with " + manifest.tokenizer->name + ": another vocabulary");
  }
  const std::string definition = dataset.tokenizer->definition();
  if (static_cast<std::int64_t>(definition.size()) != manifest.tokenizer->bytes ||
      checksum_of(definition) != manifest.tokenizer->checksum) {
    throw UserError("data.tokenizer: the vocabulary of these data is another one than that of the checkpoint (" +
                    manifest.tokenizer->name + ", " + std::to_string(definition.size()) + " and " +
                    std::to_string(manifest.tokenizer->bytes) +
                    " bytes of definition, or other contents): go on with the text that it was made from");
  }
}

}  // namespace

void require_same_model(const Manifest& manifest, const ResolvedConfig& config, const Dataset& dataset) {
  std::string text;
  bool only_vocabulary = true;
  for (const ConfigDifference& difference : differences(manifest, config)) {
    if (!is_one_of(difference.path, {"model"}) || leaves_model_as_it_is(difference.path)) continue;
    text += "\n  " + difference.text();
    only_vocabulary = only_vocabulary && difference.path == "model.vocab_size";
  }
  // Where it comes from the data, their own difference says more than its size.
  if (only_vocabulary) require_same_vocabulary(manifest, dataset);
  if (text.empty()) return;
  throw UserError("the checkpoint holds another model than the config describes:" + text +
                  (only_vocabulary ? "\nGo on with the data and the vocabulary that it was trained on, or start anew "
                                     "without --resume."
                                   : "\nTake the model section of the run that wrote it, or start anew without "
                                     "--resume."));
}

std::vector<std::string> resume_lines(const ResumePoint& point, const ResolvedConfig& config, const Dataset& dataset,
                                      const std::vector<std::string>& missing, const std::vector<std::string>& aside,
                                      int world_size) {
  const Manifest& manifest = point.manifest;
  std::vector<std::string> lines = {"resume: going on after step " + std::to_string(manifest.step) + " from " +
                                    point.directory + " (written by " + std::to_string(manifest.world_size) +
                                    (manifest.world_size == 1 ? " rank" : " ranks") + " at stage " +
                                    std::to_string(manifest.stage) + " in " + manifest.precision + ")"};
  for (const ConfigDifference& difference : differences(manifest, config)) {
    if (is_one_of(difference.path, {"device", "training.output_dir", "gradient_accumulation_steps"})) continue;
    lines.push_back("resume: " + difference.text());
  }
  const std::int64_t samples = dataset.training->samples();
  if (samples != manifest.data_samples && manifest.data_samples > 0) {
    lines.push_back("resume: the training data have " + std::to_string(samples) + " samples, before " +
                    std::to_string(manifest.data_samples) + ": from here on they come in another order");
  }
  const Settings& settings = config.settings;
  if (world_size != manifest.world_size && order_in_effect(settings) == AccumulationOrder::local) {
    lines.emplace_back(
        "resume: gradients are added up in local order, rank by rank first: on another number of ranks that is another "
        "curve, by rounding");
  } else if (world_size != manifest.world_size &&
             is_16_bit(make_precision(settings.precision, settings.batch.accumulation).accumulator)) {
    lines.emplace_back(
        "resume: gradients are added up in 16 bits, rounded once a micro-step: on another number of ranks that is "
        "another "
        "curve (data_types.grad_accum_dtype \"fp32\" makes it one)");
  }
  for (const std::string& moment : missing) {
    lines.push_back("resume: the checkpoint has no " + moment + ": the optimizer starts it anew" +
                    (moment.starts_with("max_")
                         ? ""
                         : ", with the other averages of the same tensors; steps may be larger at "
                           "first, which a warm-up or a lower lr makes up for"));
  }
  for (const std::string& name : aside)
    lines.push_back("resume: " + name + ", of a later step, is set aside as " + name + ".set-aside");
  return lines;
}

nlohmann::ordered_json resume_record(const TrainOptions& options, int world_size, int stage) {
  nlohmann::ordered_json record = {{"kind", "resume"}, {"step", 0}, {"world_size", world_size}, {"stage", stage}};
  if (options.resume_point) {
    record["step"] = options.resume_point->manifest.step;
    record["checkpoint"] = std::filesystem::absolute(options.resume_point->directory).string();
  }
  return record;
}

std::string set_aside_trace(const std::string& directory) {
  const std::filesystem::path trace = std::filesystem::path(directory) / "trace.json";
  std::error_code error;
  if (!std::filesystem::exists(trace, error)) return "";
  std::filesystem::rename(trace, trace.string() + ".set-aside", error);
  if (error) throw RunError("cannot set " + trace.string() + " aside: " + error.message());
  return "resume: trace.json, of steps before, is set aside as trace.json.set-aside";
}

}  // namespace zt
