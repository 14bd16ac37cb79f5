#include "optim/update_gate.h"

#include <string>
#include <vector>

#include "catch_compat.h"

using namespace zt;

namespace {

constexpr StepNumbers clean{true, true, 1.0, 1.0};
constexpr StepNumbers overflow{true, false, 1.0, 0.0};
constexpr StepNumbers bad_loss{false, false, 0.0, 0.0};

const SpikeGuardSettings no_guard;

LossScaleSettings scale_from(std::int64_t power, std::int64_t hysteresis = 1) {
  LossScaleSettings settings;
  settings.initial_scale_power = power;
  settings.hysteresis = hysteresis;
  return settings;
}

UpdateGate fp16_gate(const LossScaleSettings& settings) { return {LossScaler(settings), true, no_guard}; }
UpdateGate bf16_gate(bool checks) { return {LossScaler::none(), checks, no_guard}; }

// A letter for each verdict: a(pply), s(kip), r(etry), f(ail).
std::string verdicts(UpdateGate& gate, const std::vector<StepNumbers>& steps) {
  std::string letters;
  for (const StepNumbers& numbers : steps) {
    letters += "asrf"[static_cast<int>(gate.decide(numbers).verdict)];
  }
  return letters;
}

}  // namespace

TEST_CASE("a loss that is not finite leaves the scale alone, and three in a row end the run") {
  UpdateGate gate = fp16_gate(scale_from(10));
  gate.decide(clean);
  const LossScalerState before = gate.scaler().state();
  CHECK(verdicts(gate, {bad_loss, bad_loss}) == "ss");
  CHECK(gate.scaler().state() == before);
  const Decision last = gate.decide(bad_loss);
  CHECK(last.verdict == Verdict::fail);
  CHECK(last.failure == Failure::losses_in_a_row);
  CHECK(last.reason == SkipReason::loss_not_finite);
  CHECK(last.in_a_row == UpdateGate::losses_that_end_a_run);
  CHECK(gate.scaler().state() == before);
}

TEST_CASE("a finite loss breaks the row of those that are not") {
  UpdateGate gate = fp16_gate(scale_from(10));
  CHECK(verdicts(gate, {bad_loss, bad_loss, clean, bad_loss, bad_loss, overflow, bad_loss, bad_loss}) == "ssasssss");
  CHECK(gate.scaler().scale() == 512.0);
}

TEST_CASE("a retry is not asked for where the loss is not finite") {
  LossScaleSettings settings = scale_from(10);
  settings.on_overflow = OnOverflow::retry;
  UpdateGate gate = fp16_gate(settings);
  CHECK(verdicts(gate, {overflow, overflow, clean, bad_loss, overflow, bad_loss}) == "rrasrs");
  CHECK(gate.scaler().scale() == 128.0);
}

TEST_CASE("overflows that a dynamic scale may cure are not counted, and end the run at the minimum only") {
  UpdateGate gate = fp16_gate(scale_from(20, 30));
  for (int step = 0; step < 49; ++step) CHECK(gate.decide(overflow).verdict == Verdict::skip);
  CHECK(gate.scaler().scale() == 1.0);
  const Decision last = gate.decide(overflow);
  CHECK(last.verdict == Verdict::fail);
  CHECK(last.failure == Failure::at_minimum);
  CHECK(last.reason == SkipReason::gradient_overflow);
}

TEST_CASE("at the minimum a retry ends the run, too") {
  LossScaleSettings settings = scale_from(2);
  settings.on_overflow = OnOverflow::retry;
  UpdateGate gate = fp16_gate(settings);
  CHECK(verdicts(gate, {overflow, overflow, overflow}) == "rrf");
}

TEST_CASE("a static scale skips, and ten skipped steps in a row end the run") {
  LossScaleSettings settings;
  settings.loss_scale = 1024.0;
  UpdateGate gate = fp16_gate(settings);
  const std::vector<StepNumbers> nine(9, overflow);
  CHECK(verdicts(gate, nine) == std::string(9, 's'));
  CHECK(verdicts(gate, {clean}) == "a");
  CHECK(verdicts(gate, nine) == std::string(9, 's'));
  const Decision last = gate.decide(overflow);
  CHECK(last.failure == Failure::skips_in_a_row);
  CHECK(last.in_a_row == UpdateGate::skips_that_end_a_run);
  CHECK(gate.scaler().scale() == 1024.0);
}

TEST_CASE("bf16 skips what is not finite if it is to, and otherwise stops; so does fp32") {
  UpdateGate again = bf16_gate(true);
  CHECK(verdicts(again, {clean, overflow, clean, bad_loss, overflow, bad_loss, clean}) == "asasssa");
  for (const StepNumbers& wrong : {overflow, bad_loss}) {
    UpdateGate strict = bf16_gate(false);
    CHECK(strict.decide(clean).verdict == Verdict::apply);
    const Decision decision = strict.decide(wrong);
    CHECK(decision.verdict == Verdict::fail);
    CHECK(decision.failure == Failure::unscaled);
  }
  UpdateGate skipping = bf16_gate(true);
  CHECK(verdicts(skipping, std::vector<StepNumbers>(10, overflow)) == std::string(9, 's') + "f");
}

TEST_CASE("a run of losses that are not finite and overflows in turn ends, too") {
  UpdateGate gate = bf16_gate(true);
  std::string letters;
  for (int step = 0; step < 10; ++step) letters += verdicts(gate, {step % 2 == 0 ? bad_loss : overflow});
  CHECK(letters == std::string(9, 's') + "f");
  // With a dynamic scale its overflows are not counted; the losses in between are.
  UpdateGate scaled = fp16_gate(scale_from(32));
  int steps = 1;
  while (scaled.decide(steps % 2 == 1 ? bad_loss : overflow).verdict != Verdict::fail) ++steps;
  CHECK(steps == 19);
}

TEST_CASE("a spike is skipped with its numbers, is clean to the scaler, and ten in a row end the run") {
  LossScaleSettings settings = scale_from(4);
  settings.loss_scale_window = 2;
  UpdateGate gate(LossScaler(settings), true, {.action = SpikeAction::skip, .deviations = 3.0, .window = 2});
  gate.decide({true, true, 1.0, 1.0});
  gate.decide({true, true, 3.0, 1.0});  // mean 2, deviation 1
  const UpdateGateState before = gate.state();
  const Decision spike = gate.decide({true, true, 5.5, 1.0});
  CHECK(spike.verdict == Verdict::skip);
  CHECK(spike.reason == SkipReason::loss_spike);
  CHECK(spike.spike->limit == 5.0);
  CHECK(gate.scaler().scale() == 32.0);  // the third clean step
  CHECK(gate.state().spikes == before.spikes);
  CHECK(gate.decide({true, true, 2.0, 9.0}).reason == SkipReason::grad_norm_spike);
  CHECK(gate.decide(overflow).verdict == Verdict::skip);
  CHECK(gate.state().spikes == before.spikes);
  for (int step = 2; step < 9; ++step) CHECK(gate.decide({true, true, 9.0, 1.0}).verdict == Verdict::skip);
  const Decision last = gate.decide({true, true, 9.0, 1.0});
  CHECK(last.failure == Failure::skips_in_a_row);
  CHECK(last.spike);
}

TEST_CASE("a spike stops the run if it is to") {
  UpdateGate gate(LossScaler::none(), false, {.action = SpikeAction::stop, .deviations = 3.0, .window = 2});
  gate.decide({true, true, 1.0, 1.0});
  gate.decide({true, true, 1.0, 1.0});
  const Decision decision = gate.decide({true, true, 1.0, 2.0});
  CHECK(decision.verdict == Verdict::fail);
  CHECK(decision.failure == Failure::spike);
  CHECK(decision.reason == SkipReason::grad_norm_spike);
}

TEST_CASE("a gate restored in the middle goes on as if it had not stopped") {
  LossScaleSettings settings = scale_from(10, 2);
  settings.loss_scale_window = 3;
  const SpikeGuardSettings spikes{.action = SpikeAction::skip, .deviations = 4.0, .window = 4};
  std::vector<StepNumbers> steps;
  for (int step = 0; step < 60; ++step) {
    const bool jump = step % 13 == 12;
    steps.push_back(step % 11 == 10  ? overflow
                    : step % 17 == 3 ? bad_loss
                                     : StepNumbers{true, true, jump ? 50.0 : 1.0 + step % 3, 2.0 + step % 5});
  }
  UpdateGate whole(LossScaler(settings), true, spikes);
  const std::string expected = verdicts(whole, steps);
  CHECK(expected.find('s') != std::string::npos);
  for (std::size_t cut = 0; cut <= steps.size(); ++cut) {
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(cut);
    UpdateGate first(LossScaler(settings), true, spikes);
    std::string letters = verdicts(first, {steps.begin(), middle});
    UpdateGate second(LossScaler(settings), true, spikes);
    second.set_state(first.state());
    letters += verdicts(second, {middle, steps.end()});
    CHECK(letters == expected);
    CHECK(second.state() == whole.state());
  }
}
