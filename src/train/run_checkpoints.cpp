#include "train/run_checkpoints.h"

#include <cmath>

#include "checkpoint/directory.h"
#include "checkpoint/open_weights.h"
#include "comm/agree.h"
#include "core/errors.h"
#include "train/resume.h"

namespace zt {

RunCheckpoints::RunCheckpoints(const ResolvedConfig& config, const Dataset& dataset, Communicator& communicator,
                               const TrainOptions& options, Session& session, Console& console)
    : config_(config),
      dataset_(dataset),
      communicator_(communicator),
      options_(options),
      session_(session),
      console_(console),
      saver_(session.engine(), session.states(), session.optimizer().moment_names(), saver_options()) {}

SaverOptions RunCheckpoints::saver_options() const {
  const auto* tokenizer = dataset_.tokenizer.get();
  return {.checkpoints = directory(),
          .keep = config_.settings.training.checkpoints_to_keep,
          .snapshot = session_.checkpoint_snapshot(),
          .tokenizer_name = tokenizer != nullptr ? std::string(tokenizer->name()) : "",
          .tokenizer_definition = tokenizer != nullptr && first_rank() ? tokenizer->definition() : ""};
}

void RunCheckpoints::set_up_state(EarlyStopping& early_stopping, RunRecord& record) {
  if (config_.settings.training.checkpoint_interval > 0) {
    all_or_none(communicator_, [&] {
      const std::string problem = first_rank() ? saver_.lacks_room() : "";
      if (!problem.empty()) throw UserError("training.checkpoint_interval: " + problem);
    });
  }
  for (const std::string& notice : options_.resume_notices) console_.say("notice: " + notice);
  if (options_.resume_point) {
    load(early_stopping, record);
    return;
  }
  const auto pretrained = open_pretrained(config_.settings.model);
  try {
    session_.initialize(pretrained.get());
  } catch (const RunError& error) {  // damaged: found when it was read
    throw RunError((pretrained ? "model.pretrained: " : "") + std::string(error.what()));
  }
  if (options_.resume) {
    console_.say("notice: --resume: no finished checkpoint in " + config_.settings.training.output_dir +
                 ", starting from the beginning");
  }
}

void RunCheckpoints::load(EarlyStopping& early_stopping, RunRecord& record) {
  const ResumePoint& point = *options_.resume_point;
  std::vector<std::string> missing;
  try {
    missing = session_.load(point.directory);
  } catch (const RunError& error) {
    throw RunError(error.what() + point.offer);
  }
  early_stopping.set_state(point.manifest.early_stopping);
  record.best = early_stopping.best();
  record.loss = point.manifest.loss;
  record.validation_loss = point.manifest.validation_loss;
  record.evaluated = point.manifest.evaluated.value_or(-1);
  if (point.same_run) last_saved_ = point.manifest.step;
  std::vector<std::string> aside;
  all_or_none(communicator_, [&] {
    if (first_rank() && point.same_run) aside = set_aside_after(directory(), point.manifest.step);
  });
  for (const std::string& line : resume_lines(point, config_, dataset_, missing, aside, communicator_.size()))
    console_.say(line);
}

void RunCheckpoints::save(const EarlyStopping& early_stopping, RunRecord& record) {
  const std::int64_t step = session_.steps().attempted;
  if (step == last_saved_) return;
  session_.wait_for_device();
  saver_.save(describe(early_stopping, record));
  last_saved_ = step;
  record.checkpoints = saver_.saved();
  record.checkpoint_seconds = saver_.seconds_waited();
  console_.say("step " + std::to_string(step) + "  checkpoint " + checkpoint_name(step) +
               (session_.checkpoint_snapshot() != nullptr ? " is being written" : " written"));
}

void RunCheckpoints::finish(RunRecord& record) {
  saver_.finish();
  record.checkpoint_seconds = saver_.seconds_waited();
}

Manifest RunCheckpoints::describe(const EarlyStopping& early_stopping, const RunRecord& record) const {
  const auto finite = [](std::optional<double> loss) {
    return loss && std::isfinite(*loss) ? loss : std::optional<double>();
  };
  const Settings& settings = config_.settings;
  Manifest manifest;
  manifest.program = options_.program;
  manifest.step = session_.steps().attempted;
  manifest.world_size = communicator_.size();
  manifest.stage = settings.zero.stage;
  manifest.precision = settings.precision.preset;
  manifest.progress = session_.progress();
  manifest.early_stopping = early_stopping.state();
  manifest.loss = finite(record.loss);
  manifest.validation_loss = finite(record.validation_loss);
  if (record.evaluated >= 0) manifest.evaluated = record.evaluated;
  manifest.weights_checksum = session_.weights_checksum();
  manifest.data_samples = dataset_.training->samples();
  manifest.config = config_.json;
  return manifest;
}

}  // namespace zt
