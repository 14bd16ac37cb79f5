#include "train/summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/json.h"
#include "core/json_text.h"
#include "core/process.h"
#include "train/words.h"

namespace zt {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  return (upper + *std::max_element(values.begin(), middle)) / 2.0;
}

void StepTimes::add(double seconds) {
  const std::int64_t number = added_++;
  if (number == 2) seconds_.clear();
  const std::int64_t settled = number < 2 ? number : number - 2;
  if (settled % stride_ != 0) return;
  if (seconds_.size() == capacity) {
    for (std::size_t i = 0; i < capacity / 2; ++i) seconds_[i] = seconds_[2 * i];
    seconds_.resize(capacity / 2);
    stride_ *= 2;
    if (settled % stride_ != 0) return;
  }
  seconds_.push_back(seconds);
}

double StepTimes::median() const { return zt::median(seconds_); }

std::string rank_memory_json(int rank, const MemoryLedger& ledger, std::int64_t peers_shared) {
  Json entry;
  entry["rank"] = rank;
  const MemoryByCategory bytes = ledger.current();
  for (int category = 0; category < memory_category_count; ++category) {
    entry[std::string(name_of(static_cast<MemoryCategory>(category)))] = bytes.at(static_cast<std::size_t>(category));
  }
  entry["padding"] = ledger.padding();
  entry["peak_resident"] = peak_resident_bytes() - peers_shared;
  entry["peers_shared"] = peers_shared;
  return entry.dump();
}

namespace {

bool counts_tokens(const Session& session) { return session.settings().model.type == "gpt"; }

Json communication_json(const Session& session, const Plan& plan, const CommunicationCounts& counts) {
  const StepCounts steps = session.steps_here();
  const double per =
      static_cast<double>(std::max<std::int64_t>(1, steps.attempted)) * static_cast<double>(plan.parameters);
  std::int64_t sent = 0;
  for (const CollectiveCount& count : counts.training) sent += count.elements;
  const std::int64_t planned = planned_elements(plan, steps);
  Json json;
  json["elements_per_parameter_and_step"] = static_cast<double>(sent) / per;
  json["planned"] = static_cast<double>(planned) / per;
  json["paper"] = plan.paper_elements;
  json["elements"] = sent;
  json["planned_elements"] = planned;
  for (int kind = 0; kind < collective_kind_count; ++kind) {
    const CollectiveCount& count = counts.training.at(static_cast<std::size_t>(kind));
    json[std::string(name_of(static_cast<CollectiveKind>(kind)))] = {
        {"calls", count.calls}, {"bytes", count.bytes}, {"seconds", count.seconds}};
  }
  return json;
}

}  // namespace

Json make_summary(const Session& session, const Plan& plan, const RunRecord& record, const CommunicationCounts& counts,
                  const std::vector<std::string>& rank_memory, double flops_per_row) {
  const Settings& settings = session.settings();
  const StepCounts& steps = session.steps();
  Json summary;
  summary["status"] = record.status;
  if (record.status == "failed") summary["error"] = record.error;
  summary["stop_reason"] = record.stop_reason;
  summary["steps"] = {{"attempted", steps.attempted}, {"applied", steps.applied}, {"skipped", steps.skipped}};
  Json skipped_for;
  for (std::size_t reason = 1; reason < skip_reason_count; ++reason) {
    skipped_for[name_of(static_cast<SkipReason>(reason))] = steps.skipped_for.at(reason);
  }
  summary["skipped_for"] = std::move(skipped_for);
  summary["retries"] = steps.retried;
  Json final_values = {{"loss", nullptr}, {"validation_loss", nullptr}};
  if (record.loss) put_number(final_values, "loss", *record.loss);
  if (record.validation_loss) put_number(final_values, "validation_loss", *record.validation_loss);
  final_values["loss_scale"] = session.scaler().scale();
  summary["final"] = std::move(final_values);
  summary["best"] = nullptr;
  if (record.best) {
    summary["best"] = {{"step", record.best->step}};
    put_number(summary["best"], "validation_loss", record.best->validation_loss);
  }
  summary["model"] = {
      {"type", settings.model.type}, {"parameters", plan.parameters}, {"trained", plan.trained_parameters()}};
  if (record.weights_checksum) {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(*record.weights_checksum));
    summary["weights_checksum"] = text.data();
  } else {
    summary["weights_checksum"] = nullptr;
  }
  summary["run"] = {{"world_size", plan.ranks},
                    {"stage", plan.stage},
                    {"precision", settings.precision.preset},
                    {"device", settings.device.type},
                    {"instruction_set", record.instruction_set},
                    {"threads_per_rank", settings.device.threads},
                    {"micro_batch", settings.batch.micro},
                    {"accumulation", settings.batch.accumulation},
                    {"accumulation_order", name_of(order_in_effect(settings))}};
  if (!record.gpu.empty()) {
    summary["run"]["gpu"] = record.gpu;
    summary["run"]["tf32"] = record.tf32;
    summary["run"]["gelu_epilogue"] = record.gelu_epilogue;
  }

  Json ranks = Json::array();
  for (const std::string& entry : rank_memory) {
    if (!entry.empty()) ranks.push_back(Json::parse(entry));
  }
  Json planned;
  for (int category = 0; category < memory_category_count; ++category) {
    planned[std::string(name_of(static_cast<MemoryCategory>(category)))] =
        plan.memory.at(static_cast<std::size_t>(category));
  }
  planned["padding"] = plan.padding;
  summary["memory"] = {{"formula_bytes_per_parameter", plan.formula_bytes},
                       {"planned", std::move(planned)},
                       {"ranks", std::move(ranks)}};
  summary["communication"] = communication_json(session, plan, counts);

  const double step_seconds = record.step_times.median();
  const double per_second = step_seconds > 0.0 ? static_cast<double>(session.positions_per_step()) / step_seconds : 0.0;
  const double rows_of_a_rank = static_cast<double>(settings.batch.train) / plan.ranks;
  const double flops = step_seconds > 0.0 ? flops_per_row * rows_of_a_rank / step_seconds : 0.0;
  Json throughput;
  throughput[counts_tokens(session) ? "tokens_per_second" : "samples_per_second"] = per_second;
  throughput["model_flops_per_second"] = flops;
  throughput["matmul_flops_per_second"] = record.product_rate;
  throughput["utilization"] = record.product_rate > 0.0 ? flops / record.product_rate : 0.0;
  summary["throughput"] = std::move(throughput);

  summary["checkpoints"] = {{"written", record.checkpoints}, {"seconds_waited", record.checkpoint_seconds}};

  const PhaseSeconds& seconds = session.seconds();
  double exposed = 0.0;
  for (const CollectiveCount& count : counts.training) exposed += count.seconds;
  summary["seconds"] = {{"startup", record.startup_seconds}, {"train", record.train_seconds},
                        {"forward", seconds.forward},        {"backward", seconds.backward},
                        {"optimizer", seconds.optimizer},    {"communication_exposed", exposed},
                        {"data_wait", seconds.data_wait}};
  if (record.hides_its_waits) summary["seconds"]["communication_exposed"] = nullptr;
  return summary;
}

StepRecord step_record(const Session& session, const StepOutcome& outcome, double seconds) {
  return {.step = outcome.step,
          .loss = outcome.loss,
          .grad_norm = outcome.grad_norm,
          .learning_rate = outcome.learning_rate,
          .loss_scale = outcome.scale,
          .skip_reason = outcome.decision.reason,
          .retries = static_cast<std::int64_t>(outcome.retried_scales.size()),
          .samples = session.samples_after(outcome.step),
          .positions = session.samples_after(outcome.step) * session.positions_per_sample(),
          .positions_per_step = session.positions_per_step(),
          .counts_tokens = counts_tokens(session),
          .seconds = seconds};
}

Json evaluation_metrics(const Session& session, const EvaluationResult& result) {
  Json line;
  line["kind"] = "eval";
  line["step"] = session.steps().attempted;
  put_number(line, "loss", result.loss);
  if (counts_tokens(session)) put_number(line, "perplexity", std::exp(result.loss));
  if (result.accuracy) put_number(line, "accuracy", *result.accuracy);
  return line;
}

}  // namespace zt
