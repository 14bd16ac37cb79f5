#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <thread>

#include "checkpoint/checksum.h"
#include "comm/agree.h"
#include "core/available_memory.h"
#include "core/errors.h"
#include "core/files.h"
#include "core/json.h"
#include "core/json_text.h"
#include "core/process.h"
#include "device/cpu/instruction_set.h"
#include "optim/early_stopping.h"
#include "train/agreements.h"
#include "train/comms_logger.h"
#include "train/compute.h"
#include "train/console.h"
#include "train/diagnosis.h"
#include "train/digest.h"
#include "train/flops_profile.h"
#include "train/metrics_file.h"
#include "train/product_rate.h"
#include "train/report.h"
#include "train/resume.h"
#include "train/run_checkpoints.h"
#include "train/run_trace.h"
#include "train/sample.h"
#include "train/session.h"
#include "train/step_lines.h"
#include "train/step_reports.h"
#include "train/summary.h"
#include "train/words.h"

namespace zt {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Trainer {
 public:
  Trainer(ResolvedConfig config, const Dataset& dataset, Communicator& communicator, const TrainOptions& options);
  int run();

 private:
  bool first_rank() const { return communicator_.rank() == 0; }
  std::int64_t steps_to_run() const;
  bool evaluation_was_left_out() const;
  void start();
  void say_start();
  void leave_no_trace();
  void steps();
  void after_step(const StepOutcome& outcome);
  void evaluate();
  void digest();
  void save() { checkpoints_->save(early_stopping_, record_); }
  void finish_saving();
  void say_why_it_ends();
  void finish();
  [[noreturn]] void fail(const StepOutcome& outcome);
  void write_summary();
  void write_rest_of_metrics() const noexcept;
  bool stands_in_for_lost_first_rank(const std::exception& error) const;

  ResolvedConfig config_;
  const Dataset& dataset_;
  Communicator& communicator_;
  const TrainOptions& options_;
  Neighbours neighbours_;
  cpu::InstructionLevel level_;
  Plan plan_;
  ComputeChoice choice_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<RunTrace> trace_;        // null: none is asked for
  std::unique_ptr<FlopsProfile> profile_;  // null: the same
  std::unique_ptr<CommsLogger> comms_;     // null: the same, or another rank than the first
  std::unique_ptr<Session> session_;
  Console console_;
  StepReports reports_;
  std::unique_ptr<RunCheckpoints> checkpoints_;
  std::unique_ptr<MetricsWriter> metrics_;
  RunRecord record_;
  EarlyStopping early_stopping_;
  bool stops_early_ = false;
  SkipReason last_skip_reason_ = SkipReason::none;
  int stop_signal_ = 0;
  Clock::time_point step_began_;
};

Trainer::Trainer(ResolvedConfig config, const Dataset& dataset, Communicator& communicator, const TrainOptions& options)
    : config_(std::move(config)),
      dataset_(dataset),
      communicator_(communicator),
      options_(options),
      neighbours_(find_neighbours(communicator)),
      level_(agree_on_instruction_set(communicator, config_.settings.device.instruction_set)),
      choice_(choose_compute(communicator, config_.settings.device, neighbours_)),
      reports_(config_.json),
      early_stopping_(config_.settings.training.early_stopping) {
  int threads = config_.settings.device.threads;
  if (threads == 0) threads = std::max(1, allowed_core_count() / neighbours_.sharing_cores);
  settle(config_, {.vocab_size = dataset.vocab_size > 0 ? std::optional(dataset.vocab_size) : std::nullopt,
                   .device_type = choice_.type,
                   .threads = threads,
                   .communicator = choice_.settled_communicator(communicator_.size()),
                   .ranks_per_node = config_.settings.device.ranks_per_node,
                   .instruction_set = std::string(cpu::name_of(level_))});
  record_.instruction_set = choice_.instruction_set(level_);
  if (choice_.on_gpu()) {
    record_.gpu = choice_.gpu.name;
    record_.tf32 = config_.settings.device.tf32;
    record_.gelu_epilogue = config_.settings.device.gelu_epilogue;
  }
  record_.hides_its_waits = choice_.communicator == "nccl";
}

std::int64_t Trainer::steps_to_run() const {
  return steps_to_attempt(config_.settings.training, config_.settings.batch.train, dataset_.training->samples());
}

void Trainer::start() {
  const Settings& settings = config_.settings;
  const std::string& directory = settings.training.output_dir;
  if (options_.resume_point) {
    all_or_none(communicator_, [&] { require_same_model(options_.resume_point->manifest, config_, dataset_); });
  }
  const auto start_records = [&] {
    if (!first_rank()) return;
    console_ = Console(directory + "/train.log", options_.quiet, options_.verbose);
    if (options_.resume) {
      mend_last_line(directory + "/metrics.jsonl");
      if (const std::string line = set_aside_trace(directory); !line.empty()) console_.say(line);
    }
    const bool scales_loss = precision_preset(settings.precision.preset).scales_loss();
    metrics_ = std::make_unique<MetricsWriter>(directory + "/metrics.jsonl", reports_.monitors(scales_loss));
    if (options_.resume || options_.resume_point)
      metrics_->append_line(json_text(resume_record(options_, communicator_.size(), settings.zero.stage)));
    check_profile_output(flops_profiler_settings(config_.json));
    write_file_atomically(directory + "/config.resolved.json", config_.json.dump(2) + "\n");
  };
  all_or_none(communicator_, start_records);
  plan_ = make_plan(settings, communicator_.rank(), communicator_.size(), planned_ranks_on_node(choice_, communicator_),
                    scratch_of_device(settings.device));
  // Everybody has looked at what is free before anybody takes.
  all_or_none(communicator_, [&] {
    check_memory_limit(plan_, config_.memory_limit);
    if (choice_.on_gpu()) {
      check_memory(plan_, choice_.sharing, choice_.gpu.free,
                   "GPU " + std::to_string(choice_.index) + " (" + choice_.gpu.name + ")");
    } else {
      check_memory(plan_, neighbours_.on_machine, available_memory_bytes());
    }
  });
  const cpu::CpuDeviceOptions cpu_options{.sharing_cores = neighbours_.sharing_cores};
  compute_ = std::make_unique<Compute>(choice_, settings, communicator_, plan_.operations, &cpu_options);
  plan_.operations = {};
  Device* device = &compute_->device();
  Communicator* communicator = &compute_->communicator();
  const auto watch = [&](auto& watcher) {
    device = &watcher.device();
    communicator = &watcher.communicator();
  };
  if (options_.traces) {
    trace_ = std::make_unique<RunTrace>(options_.traced_steps, directory, *device, *communicator);
    watch(*trace_);
  }
  if (const FlopsProfilerSettings profiler = flops_profiler_settings(config_.json); profiler.enabled) {
    profile_ = std::make_unique<FlopsProfile>(profiler, *device, *communicator);
    watch(*profile_);
  }
  if (const CommsLoggerSettings logger = comms_logger_settings(config_.json); logger.enabled && first_rank()) {
    comms_ = std::make_unique<CommsLogger>(logger, *device, *communicator);
    watch(*comms_);
  }
  session_ =
      std::make_unique<Session>(settings, *device, *communicator, dataset_.training.get(), dataset_.validation.get());
  if (comms_) comms_->name_units(session_->layout());
  session_->watch_for_stop(options_.stop_signal, options_.asks_for_stop_every);
  checkpoints_ = std::make_unique<RunCheckpoints>(config_, dataset_, communicator_, options_, *session_, console_);
  checkpoints_->set_up_state(early_stopping_, record_);
  stops_early_ = early_stopping_.is_over();
  say_start();
}

// The settings that have no effect here, the block of text at the start, and what is suspicious.
void Trainer::say_start() {
  const Settings& settings = config_.settings;
  for (const std::string& notice : config_.notices) console_.say("notice: " + notice);
  for (const std::string& notice : dataset_.notices) console_.say("notice: " + notice);
  for (const std::string& notice : choice_.notices) console_.say("notice: " + notice);
  if (settings.training.report_delay > 0 && !choice_.on_gpu()) {
    console_.say(
        "notice: training.report_delay: 1 saves no time here: a CPU computes at once, only the losses are told later");
  }
  if (settings.training.fast_communication && choice_.communicator != "nccl") {
    console_.say(
        "notice: training.communication_order: \"fast\" has no effect here: only NCCL has a faster order than that of "
        "the ranks");
  }
  if (!options_.communicator_note.empty()) console_.warn(options_.communicator_note);
  std::string device = compute_->device().description();
  if (!choice_.on_gpu()) {
    device += " a rank";
  } else if (choice_.sharing > 1) {
    device += ", shared by " + std::to_string(choice_.sharing) + " ranks";
  } else if (communicator_.size() > 1) {
    device += " and its like, one a rank";
  }
  for (const std::string& line : start_block(settings, plan_, device, compute_->communicator().description(),
                                             dataset_.description, dataset_.training->samples())) {
    console_.say(line);
  }
  for (const std::string& line : reports_.at_start(config_.json)) console_.say(line);
  const int cores = allowed_core_count();
  if (settings.device.threads > cores) {
    console_.say("notice: device.threads is " + std::to_string(settings.device.threads) + ", this rank may run on " +
                 std::to_string(cores) + " core(s)");
  }
  if (settings.training.eval_interval > 0 && dataset_.validation == nullptr) {
    console_.warn("training.eval_interval is set but data.validation_fraction leaves nothing to evaluate on");
  }
}

// Of a run that has not begun nothing is left that would look like one.
void Trainer::leave_no_trace() {
  if (!first_rank() || options_.resume) return;
  metrics_.reset();
  console_ = {};
  std::error_code ignored;
  for (const char* file : {"/metrics.jsonl", "/train.log", "/config.resolved.json"})
    std::filesystem::remove(config_.settings.training.output_dir + file, ignored);
}

int Trainer::run() {
  try {
    start();
  } catch (const std::exception&) {
    leave_no_trace();
    throw;
  }
  try {
    record_.startup_seconds = seconds_since(options_.process_start);
    const auto begin = Clock::now();
    steps();
    session_->wait_for_device();
    record_.train_seconds = seconds_since(begin);
    if (metrics_) metrics_->flush();
    finish();
  } catch (const std::exception& error) {  // PeerFailed too: rank 0 writes the summary, whoever failed
    record_.status = "failed";
    record_.stop_reason = "error";
    record_.error = error.what();
    console_.note("error: " + record_.error);
    write_rest_of_metrics();
    if (first_rank() || stands_in_for_lost_first_rank(error)) {
      try {
        write_summary();
      } catch (const std::exception&) {  // the disk may be what failed: the first error is the one to tell
      }
    }
    throw;
  }
  if (stop_signal_ != 0) return 128 + stop_signal_;
  return 0;
}

// What the steps have recorded, before the failure of another rank's or of this one ends the process.
void Trainer::write_rest_of_metrics() const noexcept {
  try {
    if (metrics_) metrics_->flush();
  } catch (const std::exception&) {  // then this is the error that is being told, or comes after it
  }
}

// Rank 1 writes the summary where rank 0 is dead and not only failing, which leaves it time to write its own.
bool Trainer::stands_in_for_lost_first_rank(const std::exception& error) const {
  const auto* failed = dynamic_cast<const PeerFailed*>(&error);
  if (communicator_.rank() != 1 || failed == nullptr || failed->rank != 0) return false;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return !std::filesystem::exists(config_.settings.training.output_dir + "/summary.json");
}

void Trainer::steps() {
  const std::int64_t total = steps_to_run();
  const TrainingSettings& training = config_.settings.training;
  if (evaluation_was_left_out()) evaluate();
  while (!stops_early_ && session_->steps().attempted < total) {
    if (session_->unread() == 0) step_began_ = Clock::now();
    if (trace_) trace_->before_step(*session_, total);
    if (profile_) profile_->before_step(*session_);
    const auto outcome = session_->advance();
    if (profile_) {
      for (const std::string& line : profile_->after_step(*session_)) console_.say(line);
    }
    if (trace_) trace_->after_step(*session_, console_);
    if (comms_) {
      for (const std::string& line : comms_->after_step(session_->steps().attempted, session_->left_step().has_value()))
        console_.say(line);
    }
    if (outcome) after_step(*outcome);
    if (session_->left_step()) stop_signal_ = session_->left_step()->signal;
    checkpoints_->check();
    const bool evaluates = training.eval_interval > 0 && session_->steps().attempted % training.eval_interval == 0;
    const bool saves =
        training.checkpoint_interval > 0 && session_->steps().attempted % training.checkpoint_interval == 0;
    const bool digests = training.digest_interval > 0 && session_->steps().attempted % training.digest_interval == 0;
    if (evaluates || saves || digests || stop_signal_ != 0 || session_->steps().attempted == total) {
      while (session_->unread() > 0) after_step(session_->read_step());
    }
    // After a step that was left the state is that of the step before, which has its digest.
    if (digests && !session_->left_step()) digest();
    if (stop_signal_ != 0) return;
    if (evaluates) evaluate();
    if (saves) save();
  }
}

// The evaluation after the step at which a signal stopped the run: early stopping counts it, and so does its curve.
bool Trainer::evaluation_was_left_out() const {
  if (!options_.resume_point || record_.evaluated < 0) return false;
  const std::int64_t interval = config_.settings.training.eval_interval;
  const std::int64_t step = session_->steps().attempted;
  const nlohmann::ordered_json& config = options_.resume_point->manifest.config;
  const nlohmann::ordered_json::json_pointer key("/training/eval_interval");
  return interval > 0 && config.contains(key) && config.at(key) == interval && step % interval == 0 && step > 0 &&
         record_.evaluated != step && step < steps_to_run();
}

void Trainer::after_step(const StepOutcome& outcome) {
  const Settings& settings = config_.settings;
  // Where outcomes are read late the device's clock knows better how long the step took.
  const double seconds = outcome.seconds.value_or(seconds_since(step_began_));
  step_began_ = Clock::now();
  if (const int signal = signal_of(outcome.agreed.votes); signal != 0) stop_signal_ = signal;
  record_.loss = outcome.loss;
  record_.step_times.add(seconds);
  if (metrics_) metrics_->append(step_record(*session_, outcome, seconds));

  const std::int64_t step = outcome.step;
  const Decision& decision = outcome.decision;
  for (const std::string& line : retry_lines(step, outcome)) console_.say(line);
  if (decision.verdict == Verdict::skip) console_.say(skip_line(step, outcome, session_->scaler()));
  last_skip_reason_ = decision.reason;
  const double rate = static_cast<double>(session_->positions_per_step()) / seconds;
  const bool is_due = settings.steps_per_print > 0 && step % settings.steps_per_print == 0;
  console_.progress({.step = step,
                     .steps = steps_to_run(),
                     .loss = outcome.loss,
                     .scale = outcome.scale,
                     .learning_rate = outcome.learning_rate,
                     .shows_scale = session_->scaler().scales(),
                     .rate = rate,
                     .rate_unit = settings.model.type == "gpt" ? "tokens" : "samples"},
                    is_due);
  if (is_due && first_rank()) {
    for (const std::string& line : reports_.after_step(*session_, compute_->device().ledger())) console_.say(line);
  }
  if (decision.verdict == Verdict::fail) fail(outcome);
}

void Trainer::fail(const StepOutcome& outcome) {
  const std::string culprit =
      needs_diagnosis(outcome.decision) ? diagnose_not_finite(*session_, compute_->device(), outcome.scale) : "";
  fail_together<RunError>(communicator_, failure_message(session_->steps().attempted, outcome, session_->scaler(),
                                                         config_.settings, culprit));
}

void Trainer::evaluate() {
  if (dataset_.validation == nullptr) return;
  const EvaluationResult result = session_->evaluate();
  record_.evaluated = session_->steps().attempted;
  record_.validation_loss = result.loss;
  if (metrics_) {
    metrics_->append_evaluation(json_text(evaluation_metrics(*session_, result)),
                                {session_->samples(), result.loss, result.accuracy});
  }
  std::string line = "step " + std::to_string(record_.evaluated) + "  validation loss " + fixed(result.loss, 4);
  if (config_.settings.model.type == "gpt") line += "  perplexity " + fixed(std::exp(result.loss), 3);
  if (result.accuracy) line += "  accuracy " + fixed(100.0 * *result.accuracy, 2) + " %";
  console_.say(line);
  stops_early_ = early_stopping_.evaluated(record_.evaluated, result.loss);
  record_.best = early_stopping_.best();
}

// Fingerprints of weights and moments, for compare; and all copies of the parameters are held against each other.
void Trainer::digest() {
  require_equal_copies(*session_);
  const Digest digest = digest_of(*session_);
  if (!metrics_) return;
  metrics_->append_line(json_text({{"kind", "digest"},
                                   {"step", session_->steps().attempted},
                                   {"weights", checksum_text(digest.weights)},
                                   {"moments", checksum_text(digest.moments)}}));
}

// A run that ends leaves its last state where it writes any, and a stopped one always.
void Trainer::finish_saving() {
  if (stop_signal_ != 0 || config_.settings.training.checkpoint_interval > 0) save();
  checkpoints_->finish(record_);
}

// Why the steps have come to their end, for summary.json; what is out of the ordinary is said, too.
void Trainer::say_why_it_ends() {
  const TrainingSettings& training = config_.settings.training;
  if (stop_signal_ != 0) {
    record_.stop_reason = "signal";
    const auto& left = session_->left_step();
    console_.say(stop_line(stop_signal_, session_->steps().attempted,
                           left ? std::optional(left->micro_steps) : std::nullopt,
                           config_.settings.batch.accumulation));
  } else if (stops_early_) {
    record_.stop_reason = "early_stopping";
    console_.say(early_stopping_line(session_->steps().attempted, training.early_stopping));
  } else {
    record_.stop_reason = steps_to_run() < training.max_steps ? "max_epochs" : "max_steps";
  }
}

void Trainer::finish() {
  const Settings& settings = config_.settings;
  console_.end_progress();
  if (trace_) trace_->finish(*session_, console_);
  if (profile_ && !profile_->is_done())
    console_.warn("flops_profiler.profile_step: the run did not attempt that step: there is no profile");
  if (comms_) {
    for (const std::string& line : comms_->finish()) console_.say(line);
  }
  record_.status = stop_signal_ != 0 ? "stopped" : "completed";
  say_why_it_ends();
  if (stop_signal_ == 0 && settings.training.eval_interval > 0 && record_.evaluated != session_->steps().attempted)
    evaluate();
  if (stop_signal_ == 0) {
    const std::string message = not_finite_end(session_->steps().attempted, record_.loss, record_.validation_loss);
    if (!message.empty()) fail_together<RunError>(communicator_, message);
  }
  finish_saving();
  record_.weights_checksum = session_->weights_checksum();
  if (stop_signal_ == 0) {
    print_sample(config_.settings, dataset_.tokenizer.get(), *session_, first_rank());
    record_.product_rate = measure_product_rate(*session_, compute_->device());
  }
  if (session_->steps().attempted > 0 && session_->steps().applied == 0)
    console_.warn(
        nothing_applied_warning(session_->steps().attempted, last_skip_reason_, session_->scaler(), settings));
  const std::vector<std::string> memory = communicator_.all_gather_strings(
      rank_memory_json(communicator_.rank(), compute_->device().ledger(), communicator_.peers_shared_bytes()));
  if (!first_rank()) return;
  const auto summary =
      make_summary(*session_, plan_, record_, session_->counts(), memory, session_->model().flops_per_row());
  write_file_atomically(settings.training.output_dir + "/summary.json", json_text(summary, 2) + "\n");
  for (const std::string& line : closing_block(summary, settings.training.output_dir)) console_.say(line);
}

// A failed run's summary: this rank's view only, as the others may be gone.
void Trainer::write_summary() {
  console_.end_progress();
  const auto summary = make_summary(
      *session_, plan_, record_, session_->counts(),
      {rank_memory_json(communicator_.rank(), compute_->device().ledger(), communicator_.peers_shared_bytes())},
      session_->model().flops_per_row());
  write_file_atomically(config_.settings.training.output_dir + "/summary.json", json_text(summary, 2) + "\n");
}

}  // namespace

std::int64_t steps_to_attempt(const TrainingSettings& training, std::int64_t batch, std::int64_t samples) {
  if (training.max_epochs == 0) return training.max_steps;
  // Far beyond max_steps the product below could overflow.
  const double epochs = static_cast<double>(training.max_epochs);
  if (epochs * static_cast<double>(samples) / static_cast<double>(batch) >
      static_cast<double>(training.max_steps) + 1.0)
    return training.max_steps;
  return std::min(training.max_steps, (training.max_epochs * samples + batch - 1) / batch);
}

int train(const ResolvedConfig& config, const Dataset& dataset, Communicator& communicator,
          const TrainOptions& options) {
  return Trainer(config, dataset, communicator, options).run();
}

}  // namespace zt
