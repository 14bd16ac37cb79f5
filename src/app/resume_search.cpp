#include "app/resume_search.h"

#include <cstdio>
#include <string>

#include "app/output_directory.h"
#include "comm/mpi.h"
#include "config/resolve_again.h"
#include "core/errors.h"
#include "core/json.h"
#include "train/trainer.h"

namespace zt {

namespace {

// Whether a run that came to its end would go on by a config that lets it attempt `limit` steps.
bool goes_on(const FinishedRun& finished, const TrainingSettings& training, std::int64_t limit,
             const std::optional<ResumePoint>& point, const TrainingSettings& before) {
  if (limit <= finished.steps) return false;
  if (finished.stop_reason == "early_stopping") {
    const std::int64_t patience = training.early_stopping.patience;
    if (patience == 0) return true;
    return patience > before.early_stopping.patience &&
           (!point || point->manifest.early_stopping.without_improvement < patience);
  }
  if (finished.stop_reason == "max_epochs" && !point)  // which would tell how long an epoch is
    return training.max_epochs == 0 || training.max_epochs > before.max_epochs;
  return finished.stop_reason == "max_steps" || finished.stop_reason == "max_epochs";
}

// What decides about the end of a run, as the config says that it left.
TrainingSettings limits_in(const nlohmann::ordered_json& config) {
  TrainingSettings limits;
  const auto number = [](const nlohmann::ordered_json& section, const char* key) {
    if (!section.is_object()) return std::int64_t{0};
    const auto found = section.find(key);
    return found != section.end() && found->is_number_integer() ? found->get<std::int64_t>() : std::int64_t{0};
  };
  if (!config.is_object() || !config.contains("training")) return limits;
  const nlohmann::ordered_json& training = config.at("training");
  limits.max_epochs = number(training, "max_epochs");
  limits.checkpoint_interval = number(training, "checkpoint_interval");
  if (training.is_object() && training.contains("early_stopping"))
    limits.early_stopping.patience = number(training.at("early_stopping"), "patience");
  return limits;
}

}  // namespace

ResumedBatch batch_of(const ResumePoint& point) {
  return batch_of(point.manifest.config, point.directory + "/" + manifest_name + ": config");
}

std::optional<ResumeSearch> search_resume_point(const CommandLine& line, const ResolveFor& resolve) {
  const TrainingSettings training = resolve(ResumedBatch{}).settings.training;
  const std::string& directory = training.output_dir;
  ResumeSearch search = find_resume_point(line.resume_from, directory, line.resume_previous);
  const auto say = [](const std::string& text) {
    if (prints_errors_before_mpi()) std::fprintf(stderr, "%s\n", text.c_str());
  };
  const bool in_place = !search.point || search.point->same_run;
  const auto finished = finished_run(directory);
  if (finished && in_place && !line.resume_previous) {
    std::int64_t limit = training.max_steps;
    if (training.max_epochs > 0 && search.point && search.point->manifest.data_samples > 0) {
      const std::int64_t batch = resolve(batch_of(*search.point)).settings.batch.train;
      limit = steps_to_attempt(training, batch, search.point->manifest.data_samples);
    }
    const TrainingSettings before = limits_in(last_config_of(directory));
    const bool more = goes_on(*finished, training, limit, search.point, before);
    if (more && !search.point) {
      throw UserError("--resume: the run in " + directory + " is finished after " + std::to_string(finished->steps) +
                      " steps, and " +
                      (finished->stop_reason == "max_steps"
                           ? "training.max_steps asks for " + std::to_string(training.max_steps)
                           : "the config would let it go on") +
                      "; it has left no checkpoint to go on from (" +
                      (before.checkpoint_interval > 0 ? "those that it wrote are not there any more"
                                                      : "training.checkpoint_interval was 0") +
                      "): train anew with --overwrite, or in another directory with --output DIR");
    }
    if (!more) {
      say("the run in " + directory + " is finished: nothing to resume");
      return std::nullopt;
    }
  }
  // A run that was cut off between its last checkpoint and its summary goes on without a step, and comes to its end.
  const bool lacks_its_end = in_place && !finished && search.point && search.point->manifest.step == training.max_steps;
  if (search.point && search.point->manifest.step >= training.max_steps && !lacks_its_end) {
    say(search.point->directory + " has " + std::to_string(search.point->manifest.step) +
        " steps behind it, and training.max_steps is " + std::to_string(training.max_steps) + ": nothing to resume");
    return std::nullopt;
  }
  return search;
}

}  // namespace zt
