// Stage 3: parameters, too, are slices. A unit is gathered whole for the time that a pass uses it.
#include "zero/gather_ring.h"

namespace zt {

namespace {

class Stage3 final : public Engine {
 public:
  explicit Stage3(const EngineContext& given)
      : Engine(given), parameters_(context()), ring_(context()), sums_(context()) {}

  // The values of the last step are stale, whether it was applied or not.
  void begin_step() override { parameters_.forget(); }

  void reduce_gradients(int unit) override {
    ring_.reduced(unit, reduce_unit(
                            context(), unit, first_micro_step(), gradient_formats(precision()),
                            [&](Segment segment) { return ring_.region(unit, segment); },
                            [&](Segment segment) { return sums_.view(unit, segment); }));
  }

  TensorView resting_parameters(int unit, Segment segment) override { return parameters_.slice(unit, segment); }
  ConstTensorView summed_gradients(int unit, Segment segment) override { return sums_.view(unit, segment); }
  ConstTensorView summed_slice(int unit, Segment segment) override { return sums_.view(unit, segment); }
  void publish(int unit, Changed changed) override { parameters_.publish(unit, changed); }
  void forget_gathered() override { parameters_.forget(); }

 protected:
  void on_acquire(int unit) override { parameters_.acquire(unit); }
  void on_release(int unit) override { parameters_.release(unit); }
  ConstTensorView readable_parameters(int unit, Segment segment) const override {
    return parameters_.view(unit, segment);
  }
  TensorView gradient_memory(int unit, Segment segment) override { return ring_.memory(unit, segment); }
  void on_begin(Pass /*pass*/) override { parameters_.begin(order()); }

 private:
  GatheredParameters parameters_;
  GradientRing ring_;
  SliceSums sums_;
};

}  // namespace

std::unique_ptr<Engine> make_stage3(const EngineContext& context) { return std::make_unique<Stage3>(context); }

}  // namespace zt
