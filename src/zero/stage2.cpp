// Stage 2: optimizer states and gradients are slices. A unit's gradients exist whole only between their making and
// their reduction, in a ring.
#include "zero/parts.h"

namespace zt {

namespace {

class Stage2 final : public Engine {
 public:
  explicit Stage2(const EngineContext& given)
      : Engine(given), parameters_(context()), ring_(context()), sums_(context()) {}

  void reduce_gradients(int unit) override {
    ring_.reduced(unit, reduce_unit(
                            context(), unit, first_micro_step(), gradient_formats(precision()),
                            [&](Segment segment) { return ring_.region(unit, segment); },
                            [&](Segment segment) { return sums_.view(unit, segment); }));
  }

  TensorView resting_parameters(int unit, Segment segment) override { return parameters_.slice(unit, segment); }
  ConstTensorView summed_gradients(int unit, Segment segment) override { return sums_.view(unit, segment); }
  ConstTensorView summed_slice(int unit, Segment segment) override { return sums_.view(unit, segment); }
  void publish(int unit, Changed changed) override { parameters_.gather(unit, changed); }

 protected:
  void on_acquire(int unit) override { parameters_.wait_until_gathered(unit); }
  ConstTensorView readable_parameters(int unit, Segment segment) const override {
    return parameters_.view(unit, segment);
  }
  TensorView gradient_memory(int unit, Segment segment) override { return ring_.memory(unit, segment); }

 private:
  WholeParameters parameters_;
  GradientRing ring_;
  SliceSums sums_;
};

}  // namespace

std::unique_ptr<Engine> make_stage2(const EngineContext& context) { return std::make_unique<Stage2>(context); }

}  // namespace zt
