// The loss scale of fp16 training: a pure state machine. Every rank runs its own copy on the same agreed events.
#pragma once

#include <cstdint>

#include "config/settings.h"

namespace zt {

// What a checkpoint keeps of it.
struct LossScalerState {
  double scale = 1.0;
  std::int64_t clean_steps = 0;  // in a row: since the start or the last overflow; apex: or the last growth
  std::int64_t hysteresis = 1;   // overflows left to tolerate, the one that halves included
  bool operator==(const LossScalerState&) const = default;
};

// One machine for all ZeRO stages, with two rules for a dynamic scale:
//
// deepspeed  DeepSpeed's scaler of ZeRO stages 1 to 3. An overflow halves the scale once `hysteresis` overflows were
//            spent; a run of clean steps doubles it and refills the hysteresis. The first growth comes with clean step
//            number loss_scale_window + 1, the next ones a window apart.
// apex       apex's amp; PyTorch's GradScaler, too. An overflow halves the scale. A counter of clean steps, which an
//            overflow sets to 0, doubles it when it reaches loss_scale_window, and starts again.
//
// Here both end at a minimum and a maximum. An overflow at the minimum has nothing left to lower: the run is to end.
// Without a minimum (0) that is 2^-126; neither bound lets the scale leave what fp32 holds together with its
// reciprocal.
//
// With OnOverflow::retry every overflow halves the scale at once: the batch is run again, and with a scale that
// stayed it would overflow for ever. So hysteresis plays no part. Each attempt is an event of its own: the one
// that fits is the first clean step after the overflow.
//
// The gradients of a step are to be divided by the scale that its loss was multiplied by: read scale() before the
// step and call update() after it. (DeepSpeed divides by the new scale, so that the update of a growth step is half
// as large as it should be.)
class LossScaler {
 public:
  // loss_scale 0 is dynamic, anything else static. Throws UserError if a scale and its reciprocal would not both be
  // normal fp32 numbers, if the window is shorter than a step, or if a static scale should be lowered for a retry.
  explicit LossScaler(const LossScaleSettings& settings);
  // fp32 and bf16: scale 1; a value that is not finite stops the run.
  static LossScaler none();

  enum class Verdict : std::uint8_t {
    apply,       // the update may be made
    skip,        // overflow: leave weights and moments as they are
    retry,       // overflow, and the scale is lower now: run the same batch again
    at_minimum,  // overflow with nothing left to lower: the run fails
    stop,        // a non-finite value without loss scaling: the run fails
  };

  // What the next loss is to be multiplied by.
  double scale() const { return state_.scale; }
  bool dynamic() const { return mode_ == Mode::dynamic; }
  bool scales() const { return mode_ != Mode::none; }

  // Once per attempt, with what all ranks agreed on. at_minimum and stop leave the state as it was.
  Verdict update(bool overflow);

  const LossScalerState& state() const { return state_; }
  // A static scale or none stays what the settings say: of the state only the counters are taken.
  void set_state(const LossScalerState& state);

  // 2^126 is the largest power of two whose reciprocal is a normal fp32 number. The scale does not grow past it.
  static constexpr double largest_scale = 0x1p126;
  static constexpr double smallest_scale = 0x1p-126;

 private:
  enum class Mode : std::uint8_t { none, fixed, dynamic };
  LossScaler() = default;
  Verdict back_off();
  void count_clean_step();

  Mode mode_ = Mode::none;
  LossScaleRule rule_ = LossScaleRule::deepspeed;
  double minimum_ = 1.0, maximum_ = largest_scale;
  std::int64_t window_ = 1000;
  std::int64_t hysteresis_ = 1;
  bool consecutive_hysteresis_ = false;
  bool retry_ = false;
  LossScalerState state_;
};

}  // namespace zt
