// The loss scale of fp16 training: a pure state machine. Every rank runs its own copy on the same agreed events.
#pragma once

#include <cstdint>

#include "config/settings.h"

namespace zt {

// What a checkpoint keeps of it.
struct LossScalerState {
  double scale = 1.0;
  std::int64_t iteration = 0;       // steps seen
  std::int64_t last_overflow = -1;  // the iteration of the last overflow
  std::int64_t hysteresis = 1;      // overflows left to tolerate, the one that halves included
  bool operator==(const LossScalerState&) const = default;
};

// DeepSpeed's dynamic scaler of ZeRO stages 1 to 3, here at every stage: an overflow halves the scale once `hysteresis`
// overflows were spent, a run of clean steps doubles it and refills the hysteresis. The first growth comes with
// clean step number loss_scale_window + 1, the next ones a window apart. One thing differs from DeepSpeed: the
// gradients of a step are to be divided by the scale that its loss was multiplied by, so read scale() before the
// step and call update() after it.
class LossScaler {
 public:
  // fp16: loss_scale 0 is dynamic, anything else static. Throws UserError if a scale and its reciprocal would not
  // both be normal fp32 numbers.
  explicit LossScaler(const LossScaleSettings& settings);
  // fp32 and bf16: scale 1; a value that is not finite stops the run.
  static LossScaler none();

  enum class Verdict : std::uint8_t {
    apply,       // the update may be made
    skip,        // overflow: leave weights and moments as they are
    at_minimum,  // overflow with nothing left to lower: the run fails
    stop,        // a non-finite value without loss scaling: the run fails
  };

  // What the next loss is to be multiplied by.
  double scale() const { return state_.scale; }
  bool dynamic() const { return mode_ == Mode::dynamic; }

  // Once per attempted step, with what all ranks agreed on. at_minimum and stop leave the state as it was.
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

  Mode mode_ = Mode::none;
  double minimum_ = 1.0;
  std::int64_t window_ = 1000;
  std::int64_t hysteresis_ = 1;
  bool consecutive_hysteresis_ = false;
  LossScalerState state_;
};

}  // namespace zt
