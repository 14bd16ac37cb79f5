#include "train/session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "checkpoint/checksum.h"
#include "checkpoint/load_state.h"
#include "checkpoint/load_weights.h"
#include "checkpoint/saver.h"
#include "comm/agree.h"
#include "train/idle_pass.h"

namespace zt {

namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& total_;
  std::chrono::steady_clock::time_point start_;
};

SampleShape sample_shape(const ModelSettings& model) {
  if (model.type == "gpt") return {.tokens = model.gpt.n_positions, .token_targets = model.gpt.n_positions};
  const bool classes = model.mlp.loss == "cross_entropy";
  return {.token_targets = classes ? 1 : 0,
          .features = model.mlp.layers.front(),
          .value_targets = classes ? 0 : model.mlp.layers.back()};
}

UpdateGate make_gate(const Settings& settings) {
  const PrecisionPreset& preset = precision_preset(settings.precision.preset);
  const bool scales = preset.scales_loss();
  const bool bf16 = preset.precision.parameter == DType::bf16;
  return {scales ? LossScaler(settings.loss_scale) : LossScaler::none(),
          scales || (bf16 && settings.bf16_check_grad_overflow), settings.training.spike_guard};
}

}  // namespace

Session::Session(const Settings& settings, Device& device, Communicator& communicator, const Source* training,
                 const Source* validation)
    : settings_(settings),
      device_(device),
      communicator_(communicator),
      precision_(make_precision(settings.precision, settings.batch.accumulation)),
      model_(make_model(settings, precision_, device, settings.batch.micro)),
      layout_(std::make_unique<Layout>(model_->units(), communicator.size())),
      engine_(make_engine({device, communicator, *layout_, precision_, settings.batch.accumulation, settings.zero,
                           order_in_effect(settings)})),
      optimizer_(make_optimizer(settings.optimizer)),
      matrices_(make_whole_matrices(*engine_, *optimizer_)),
      states_(std::make_unique<DeviceStateStore>(*engine_, *optimizer_)),
      gate_(make_gate(settings)),
      sums_(std::make_unique<StepSums>(device)),
      checksum_(device.allocate(sizeof(std::uint64_t), MemoryCategory::workspace, "checksum")),
      clock_(device) {
  engine_->follow(*model_);
  prepare_optimizer(*engine_, *optimizer_);
  const std::int64_t micro = settings.batch.micro;
  if (training != nullptr) {
    training_ = std::make_unique<Loader>(*training, Loader::Order::shuffled, settings.training.seed, micro,
                                         settings.batch.train);
  }
  if (validation != nullptr) {
    validation_ = std::make_unique<Loader>(*validation, Loader::Order::sequential, settings.training.seed, micro,
                                           settings.batch.train);
  }
  if (settings.training.report_delay > 0) delayed_ = std::make_unique<DelayedSteps>(device);
  feeder_ = std::make_unique<BatchFeeder>(device, sample_shape(settings.model), micro);
  if (settings.training.checkpoint_in_background && settings.training.checkpoint_interval > 0) {
    const std::int64_t bytes = owned_state_bytes(*engine_, *states_, optimizer_->moments());
    // On a CPU the host's memory is the device's, and counts.
    checkpoint_snapshot_ = settings.device.type == "cuda"
                               ? device.allocate_host(bytes, "checkpoint snapshot")
                               : device.allocate(bytes, MemoryCategory::workspace, "checkpoint snapshot");
  }
}

void Session::initialize(const WeightSource* from) {
  communicator_.set_purpose(Purpose::control);
  forget_decoded();
  if (from != nullptr) {
    load_weights(*engine_, *states_, *from);
  } else {
    initialize_parameters(*engine_, *states_, settings_.training.seed);
  }
  device_.synchronize(Stream::compute);
  device_.synchronize(Stream::gather);
}

std::vector<std::string> Session::load(const std::string& checkpoint) {
  communicator_.set_purpose(Purpose::control);
  forget_decoded();
  std::unique_ptr<NativeCheckpoint> source;
  all_or_none<RunError>(communicator_, [&] { source = std::make_unique<NativeCheckpoint>(checkpoint); });
  std::vector<std::string> missing = load_state(*engine_, *states_, *source, optimizer_->moment_names());
  device_.synchronize(Stream::compute);
  device_.synchronize(Stream::gather);
  const Manifest& manifest = source->manifest();
  TrainingProgress progress = manifest.progress;
  // A format that needed no scale says nothing of the one that this format needs.
  if (manifest.precision != settings_.precision.preset && !precision_preset(manifest.precision).scales_loss())
    progress.gate.scaler = gate_.state().scaler;
  set_progress(progress);
  // Other formats hold other values.
  const std::uint64_t checksum = weights_checksum();
  if (manifest.precision == settings_.precision.preset && checksum != manifest.weights_checksum) {
    fail_together<RunError>(communicator_, checkpoint + ": the weights have another checksum than the manifest says: " +
                                               checksum_text(checksum) + ", not " +
                                               checksum_text(manifest.weights_checksum));
  }
  return missing;
}

std::int64_t Session::losses_per_step() const {
  if (!training_ || steps_.attempted == 0) return positions_per_step();
  return training_->valid(first_sample());
}

std::int64_t Session::positions_per_step() const { return settings_.batch.train * positions_per_sample(); }

std::int64_t Session::positions_per_sample() const { return sample_shape(settings_.model).losses(); }

std::int64_t Session::micro_batch_of(std::int64_t k) const { return k * communicator_.size() + communicator_.rank(); }

std::int64_t Session::first_sample() const { return samples() - settings_.batch.train; }

StepCounts Session::steps_here() const {
  StepCounts here = steps_;
  here.attempted -= before_.attempted;
  here.applied -= before_.applied;
  here.skipped -= before_.skipped;
  here.retried -= before_.retried;
  for (std::size_t reason = 0; reason < skip_reason_count; ++reason)
    here.skipped_for.at(reason) -= before_.skipped_for.at(reason);
  return here;
}

TrainingProgress Session::progress() const { return {steps_, gate_.state(), samples()}; }

void Session::set_progress(const TrainingProgress& progress) {
  steps_ = before_ = progress.steps;
  gate_.set_state(progress.gate);
  samples_before_ = progress.samples;
}

// Before micro-step k of a training step. One micro-step is as short as a wait can be made.
bool Session::leaves_step(std::int64_t k) {
  if (settings_.batch.accumulation == 1 || !leaves_steps_) return false;
  const int signal = stop_.ask(device_, communicator_);
  if (signal == 0) return false;
  left_ = LeftStep{signal, k};
  return true;
}

// The micro-steps of the step that steps_.attempted counts: micro-batch j = k N + r of the global batch for k = 0 ...
bool Session::run_micro_steps(Device& device, double scale, Purpose purpose) {
  const BatchSettings& batch = settings_.batch;
  const std::int64_t micro_batches = batch.micro_batches();
  const double of_losses =
      scale * static_cast<double>(micro_batches) / (static_cast<double>(losses_per_step()) * predivision(settings_));
  const StepInfo step{settings_.training.seed, steps_.attempted, static_cast<float>(of_losses)};
  communicator_.set_purpose(purpose);
  forget_decoded();
  engine_->begin_step();
  sums_->clear();
  for (std::int64_t k = 0; k < batch.accumulation; ++k) {
    if (purpose == Purpose::training && leaves_step(k)) return false;
    if (micro_batch_of(k) >= micro_batches) {
      engine_->begin_micro_step(k);
      run_idle_micro_step(device, *engine_, *model_);
      continue;
    }
    DeviceBatch micro_batch;
    {
      const Stopwatch watch(seconds_.data_wait);
      micro_batch = feeder_->take(training_.get(), first_sample(), micro_batch_of(k)).batch;
    }
    engine_->begin_micro_step(k);
    {
      const PhaseClock::Span span(clock_, seconds_.forward);
      const ActivitySpan activity(device_, Activity::forward, k);
      model_->forward(device, *engine_, micro_batch, step);
    }
    {
      // While the device is at work: the next one, of this step or of the next.
      const Stopwatch watch(seconds_.data_wait);
      const bool last = micro_batch_of(k + 1) >= micro_batches;
      feeder_->prefetch(training_.get(), first_sample() + (last ? batch.train : 0), micro_batch_of(last ? 0 : k + 1));
    }
    const PhaseClock::Span span(clock_, seconds_.backward);
    const ActivitySpan activity(device_, Activity::backward, k);
    const LossView loss = model_->backward(device, *engine_, micro_batch, step);
    sums_->add_losses(loss.losses, loss.count);
  }
  return true;
}

FinishContext Session::finish_context() {
  return {*engine_,
          *states_,
          *optimizer_,
          gate_,
          *sums_,
          settings_.gradient_clipping,
          static_cast<double>(settings_.batch.micro_batches()) / predivision(settings_),
          static_cast<double>(losses_per_step()),
          settings_.optimizer.decay_biases,
          settings_.optimizer.decay_norms,
          matrices_.get()};
}

ScheduledValues Session::scheduled() const {
  return scheduled_values(settings_.scheduler, settings_.optimizer.learning_rate, steps_.applied);
}

StepOutcome Session::train_step() { return attempt_step().value(); }

// Nothing was updated since the step before.
void Session::undo_attempt() {
  --steps_.attempted;
  communicator_.set_purpose(Purpose::control);
}

CommunicationCounts Session::counts() const {
  CommunicationCounts counts = communicator_.counts();
  if (left_) counts.training = sent_before_step_;
  return counts;
}

std::optional<StepOutcome> Session::attempt_step() {
  ++steps_.attempted;
  FinishContext context = finish_context();
  std::vector<double> retried_scales;
  while (true) {
    sent_before_step_ = communicator_.counts().training;
    if (!run_micro_steps(device_, scaler().scale(), Purpose::training)) {
      undo_attempt();
      return std::nullopt;
    }
    StepOutcome outcome;
    {
      const PhaseClock::Span span(clock_, seconds_.optimizer);
      const ActivitySpan activity(device_, Activity::finish, steps_.attempted);
      const std::int64_t over = clock_.ended();
      outcome = finish_step(context, steps_.applied, scheduled(), stop_.vote(), [this, over] { clock_.settle(over); });
    }
    outcome.step = steps_.attempted;
    if (outcome.decision.verdict == Verdict::retry) {
      // Nothing was updated or published: only the passes are run again.
      ++steps_.retried;
      retried_scales.push_back(outcome.scale);
      continue;
    }
    const bool applied = outcome.decision.verdict == Verdict::apply;
    ++(applied ? steps_.applied : steps_.skipped);
    if (!applied) ++steps_.skipped_for.at(static_cast<std::size_t>(outcome.decision.reason));
    communicator_.set_purpose(Purpose::control);
    outcome.retried_scales = std::move(retried_scales);
    return outcome;
  }
}

void Session::wait_for_device() {
  for (const Stream stream : {Stream::copy, Stream::reduce, Stream::gather, Stream::compute})
    device_.synchronize(stream);
  clock_.settle(clock_.ended());
}

std::optional<StepOutcome> Session::advance() {
  if (!delayed_) return attempt_step();
  ++steps_.attempted;
  delayed_->begin();
  sent_before_step_ = communicator_.counts().training;
  if (!run_micro_steps(device_, 1.0, Purpose::training)) {
    undo_attempt();
    return std::nullopt;
  }
  clocked_.push_back(clock_.ended());
  {
    const PhaseClock::Span span(clock_, seconds_.optimizer);
    const ActivitySpan activity(device_, Activity::finish, steps_.attempted);
    FinishContext context = finish_context();
    delayed_->finish(context, steps_.attempted, steps_.applied, scheduled(), stop_.vote());
  }
  communicator_.set_purpose(Purpose::control);
  ++steps_.applied;  // until it is known better
  if (delayed_->unread() < DelayedSteps::most_unread) return std::nullopt;
  return read_step();
}

StepOutcome Session::read_step() {
  StepOutcome outcome = delayed_->read(gate_);
  clock_.settle(clocked_.front());
  clocked_.pop_front();
  if (outcome.decision.verdict != Verdict::apply) {
    steps_.applied -= steps_.attempted - outcome.step + 1;
    steps_.attempted = outcome.step;
    ++steps_.skipped;
    ++steps_.skipped_for.at(static_cast<std::size_t>(outcome.decision.reason));
  }
  return outcome;
}

void Session::replay_micro_steps(Device& device, double scale) { run_micro_steps(device, scale, Purpose::control); }

EvaluationResult Session::evaluate() {
  communicator_.set_purpose(Purpose::evaluation);
  forget_decoded();
  engine_->forget_gathered();
  sums_->clear();
  const StepInfo step{settings_.training.seed, steps_.attempted, 0.0F};
  const std::int64_t global_batch = settings_.batch.train;
  std::array<std::int64_t, 2> totals{};  // counted, correct
  bool has_accuracy = false;
  std::vector<std::int32_t> correct;
  for (std::int64_t batch = 0; batch < settings_.training.eval_steps; ++batch) {
    const std::int64_t first_sample = batch * global_batch;
    if (validation_ && validation_->valid(first_sample) == 0) break;
    for (std::int64_t k = 0; k < settings_.batch.accumulation; ++k) {
      const BatchFeeder::Fed fed = feeder_->take(validation_.get(), first_sample, micro_batch_of(k));
      const LossView loss = model_->evaluate(device_, *engine_, fed.batch, step);
      sums_->add_losses(loss.losses, loss.count);
      totals[0] += fed.valid;
      if (loss.correct == nullptr) continue;
      has_accuracy = true;
      correct.resize(static_cast<std::size_t>(loss.count));
      device_.copy(Stream::compute, correct.data(), loss.correct, loss.count * 4);
      device_.synchronize(Stream::compute);
      for (const std::int32_t hit : correct) totals[1] += hit;
    }
  }
  const Agreement agreed = sums_->agree(communicator_, 0);
  communicator_.all_reduce_sum(totals);
  engine_->forget_gathered();
  communicator_.set_purpose(Purpose::control);
  EvaluationResult result;
  result.counted = totals[0];
  const auto counted = static_cast<double>(totals[0]);
  result.loss = agreed.losses_not_finite > 0 ? std::nan("") : agreed.loss_sum / counted;
  if (has_accuracy) result.accuracy = static_cast<double>(totals[1]) / counted;
  return result;
}

void Session::forget_decoded() {
  if (decoder_) decoder_->forget();
}

std::int32_t Session::next_token(const std::vector<std::int32_t>& tokens, float uniform) {
  constexpr double temperature = 0.5;
  communicator_.set_purpose(Purpose::evaluation);
  engine_->forget_gathered();
  if (!decoder_) {
    const GptSettings& gpt = settings_.model.gpt;
    decoder_ =
        std::make_unique<Decoder>(device_, *model_, *engine_, gpt.n_positions, gpt.vocab_size, Decoder::Prompt::whole,
                                  [this](std::span<const std::int32_t> put) {
                                    return feeder_->put_tokens(put.data(), static_cast<std::int64_t>(put.size()));
                                  });
  }
  const std::span<const float> logits = decoder_->logits_after(tokens);
  communicator_.set_purpose(Purpose::control);

  const double largest = *std::max_element(logits.begin(), logits.end());
  const auto weight = [&](float logit) { return std::exp((static_cast<double>(logit) - largest) / temperature); };
  double total = 0.0;
  for (const float logit : logits) total += weight(logit);
  double left = static_cast<double>(uniform) * total;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    left -= weight(logits[token]);
    if (left < 0.0) return static_cast<std::int32_t>(token);
  }
  return static_cast<std::int32_t>(logits.size()) - 1;
}

void Session::rehearse_next_token() {
  // A sequence that fills the window all but for one place, and the step that fills it.
  const auto positions = static_cast<std::size_t>(settings_.model.gpt.n_positions);
  next_token(std::vector<std::int32_t>(std::max<std::size_t>(1, positions - 1)), 0.0F);
  next_token(std::vector<std::int32_t>(positions), 0.0F);
}

std::uint64_t Session::weights_checksum() { return zt::weights_checksum(*engine_, *states_, checksum_); }

void Session::measure_pass(Device& device) {
  communicator_.set_purpose(Purpose::control);
  const StepInfo step{settings_.training.seed, steps_.attempted, 1.0F};
  forget_decoded();
  engine_->begin_step();
  engine_->begin_micro_step(0);
  const DeviceBatch batch = feeder_->last();
  model_->forward(device, *engine_, batch, step);
  model_->backward(device, *engine_, batch, step);
}

std::string Session::tensor_at(const void* address) const {
  const std::string activation = model_->activation_at(address);
  if (!activation.empty()) return activation;
  const std::string gradient = engine_->gradient_at(address);
  return gradient.empty() ? "" : "the gradient of " + gradient;
}

}  // namespace zt
