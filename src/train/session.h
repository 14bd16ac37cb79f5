// One rank's share of a training run: model, engine, optimizer and batches on a device, and the things a run does
// with them. It knows nothing of files and screens (train/trainer.h). The plan of a run is made by the same code on
// the counting device.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/weight_source.h"
#include "comm/communicator.h"
#include "config/settings.h"
#include "data/loader.h"
#include "device/device.h"
#include "model/decoder.h"
#include "model/model.h"
#include "optim/optimizer.h"
#include "optim/progress.h"
#include "optim/schedule.h"
#include "optim/update_gate.h"
#include "train/batch_feeder.h"
#include "train/phase_clock.h"
#include "train/stop_watch.h"
#include "zero/delayed_step.h"
#include "zero/engine.h"
#include "zero/finish_step.h"
#include "zero/layout.h"
#include "zero/state_store.h"
#include "zero/whole_matrices.h"

namespace zt {

// Seconds of this rank by what it did, where it was done (on the device; data_wait: on the host); sums over the run.
struct PhaseSeconds {
  double forward = 0.0, backward = 0.0, optimizer = 0.0, data_wait = 0.0;
};

struct EvaluationResult {
  double loss = 0.0;               // mean over all that counts
  std::optional<double> accuracy;  // of classifications
  std::int64_t counted = 0;        // tokens or rows
};

class Session {
 public:
  // `training`, `validation`: the data, or null on a device that does not compute. Allocates everything; weights are
  // set by initialize(). Settings are resolved (vocabulary included).
  Session(const Settings& settings, Device& device, Communicator& communicator, const Source* training,
          const Source* validation);

  // Weights as they start, or from a source.
  void initialize(const WeightSource* from = nullptr);
  // In place of initialize(): weights, moments and progress of a checkpoint. Returns the optimizer's moments that it
  // lacks. All ranks; errors as of load_state() (checkpoint/load_state.h).
  std::vector<std::string> load(const std::string& checkpoint);

  // From now on the votes of steps count the stop signal that `signal` gives, and with `every` seconds
  // (train/stop_watch.h) a step may be left between two of its micro-steps: then advance() returns nothing, left_step()
  // has a value, and the run is to end. What has been computed of that step is lost: weights, moments, counters and the
  // data's position are those after the step before, or, where the step was being run again, with the scale of the
  // retry.
  void watch_for_stop(std::function<int()> signal, std::optional<double> every) {
    stop_ = StopWatch(std::move(signal), every.value_or(0.0));
    leaves_steps_ = every.has_value();
  }
  struct LeftStep {
    int signal = 0;
    std::int64_t micro_steps = 0;  // of it that had been computed
  };
  const std::optional<LeftStep>& left_step() const { return left_; }

  // One attempted step: A micro-steps and finish_step, more than once where the gate asks for a retry: with the same
  // samples and the same dropout. Not for a run whose steps may be left.
  StepOutcome train_step();
  // The same for a loop that need not know the outcome at once: begins a step and returns what has become known by it,
  // its own outcome or, with training.report_delay, that of the step before. unread() steps are then to be read by
  // read_step(), oldest first. A step that is not applied ends such a run: the ones after it, which the device has left
  // out, are no longer counted.
  std::optional<StepOutcome> advance();
  std::size_t unread() const { return delayed_ ? delayed_->unread() : 0; }
  StepOutcome read_step();

  // Runs the micro-steps of the step that was attempted last again on `device` (a decorator of its own one), with
  // the weights as they are; nothing is updated.
  void replay_micro_steps(Device& device, double scale);

  EvaluationResult evaluate();
  // A token after `tokens` (at most the last n_positions of them count: window_start()), drawn with the given uniform
  // number in [0, 1) at temperature 0.5. All ranks call it with the same arguments and get the same token. Called again
  // with one token more, it runs that one alone.
  std::int32_t next_token(const std::vector<std::int32_t>& tokens, float uniform);
  // The device is told (where it counts) all that next_token will ever run.
  void rehearse_next_token();

  std::uint64_t weights_checksum();
  // 8 bytes of the device, for sums of checksums.
  const Buffer& checksum_scratch() const { return checksum_; }

  // Runs one forward and backward pass on `device` (a decorator) for measurements: gradients and activations are
  // overwritten, weights are not.
  void measure_pass(Device& device);

  const Settings& settings() const { return settings_; }
  const Precision& precision() const { return precision_; }
  const Layout& layout() const { return *layout_; }
  const StepCounts& steps() const { return steps_; }
  StepCounts steps_here() const;  // without those before a resume
  // What was sent, without the passes of a step that was left.
  CommunicationCounts counts() const;
  // Samples that the attempted steps have consumed since training began; those up to a step since it was made.
  std::int64_t samples() const { return samples_after(steps_.attempted); }
  std::int64_t samples_after(std::int64_t step) const {
    return samples_before_ + (step - before_.attempted) * settings_.batch.train;
  }
  // No step may be unread.
  TrainingProgress progress() const;
  // A run that goes on from there.
  void set_progress(const TrainingProgress& progress);
  // Complete up to the last call of train_step's decision; wait_for_device() makes it complete.
  const PhaseSeconds& seconds() const { return seconds_; }
  void wait_for_device();
  const UpdateGate& gate() const { return gate_; }
  const LossScaler& scaler() const { return gate_.scaler(); }
  const Model& model() const { return *model_; }
  Engine& engine() { return *engine_; }
  StateStore& states() { return *states_; }
  // Memory of the host for a copy of what this rank owns (training.checkpoint_in_background); null: not asked for.
  const Buffer* checkpoint_snapshot() const { return checkpoint_snapshot_ ? &checkpoint_snapshot_ : nullptr; }
  const Optimizer& optimizer() const { return *optimizer_; }
  Communicator& communicator() { return communicator_; }
  // Losses that count in the step attempted last, over all ranks: tokens or rows. Its mean loss is the sum over this.
  std::int64_t losses_per_step() const;
  // Positions of sequences, or rows, that a step runs through the model, over all ranks: masked ones included.
  std::int64_t positions_per_step() const;
  // The same of a sample.
  std::int64_t positions_per_sample() const;
  // Which tensor an address belongs to, in words.
  std::string tensor_at(const void* address) const;

 private:
  std::int64_t micro_batch_of(std::int64_t k) const;  // j = k N + r
  std::int64_t first_sample() const;                  // of the step that was attempted last
  void forget_decoded();
  // False: the step was left.
  bool run_micro_steps(Device& device, double scale, Purpose purpose);
  std::optional<StepOutcome> attempt_step();
  bool leaves_step(std::int64_t k);
  void undo_attempt();
  FinishContext finish_context();
  ScheduledValues scheduled() const;

  Settings settings_;
  Device& device_;
  Communicator& communicator_;
  Precision precision_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<WholeMatrices> matrices_;  // null: the optimizer needs none whole
  std::unique_ptr<StateStore> states_;
  UpdateGate gate_;
  std::unique_ptr<StepSums> sums_;
  std::unique_ptr<DelayedSteps> delayed_;  // null: outcomes are known at once
  Buffer checksum_, checkpoint_snapshot_;
  std::unique_ptr<Loader> training_, validation_;
  std::unique_ptr<BatchFeeder> feeder_;
  PhaseClock clock_;
  std::deque<std::int64_t> clocked_;  // spans that are over with each unread step
  std::unique_ptr<Decoder> decoder_;  // null: no token was asked for yet
  StepCounts steps_;
  StepCounts before_;  // what a resumed run began with
  std::int64_t samples_before_ = 0;
  PhaseSeconds seconds_;
  StopWatch stop_;
  bool leaves_steps_ = false;
  std::optional<LeftStep> left_;
  decltype(CommunicationCounts::training) sent_before_step_{};  // by the steps before, and attempts of this one
};

}  // namespace zt
