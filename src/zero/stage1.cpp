// Stage 1: optimizer states are slices. Parameters and gradients are whole; each rank sums and updates its slice,
// then the updated slices are gathered.
// In local order the whole gradients are the sums of this rank's own micro-batches, each made in a ring.
#include "zero/parts.h"

namespace zt {

namespace {

class Stage1 final : public Engine {
 public:
  explicit Stage1(const EngineContext& given)
      : Engine(given),
        parameters_(context()),
        gradients_(context(), Extent::whole, MemoryCategory::gradients, "gradients",
                   sums_locally() ? accumulator_formats(precision()) : gradient_formats(precision()),
                   Arrangement::trained),
        unread_(layout().units().size()) {
    if (sums_locally()) {
      ring_ = std::make_unique<GradientRing>(context());
    } else if (!sums_in_place()) {
      sums_ = std::make_unique<SliceSums>(context());
    }
  }

  void reduce_gradients(int unit) override {
    if (ring_) {
      ring_->add_to(unit, first_micro_step(), [&](Segment segment) { return gradients_.view(unit, segment); });
      if (last_micro_step()) reduce_sums(context(), unit, gradients_);
      return;
    }
    Unread& unread = unread_.at(static_cast<std::size_t>(unit));
    unread.ticket = reduce_unit(
        context(), unit, first_micro_step(), gradient_formats(precision()),
        [&](Segment segment) { return gradients_.region(unit, segment); },
        [&](Segment segment) { return sum(unit, segment); });
    unread.reduced = device().record(Stream::reduce);
  }

  TensorView resting_parameters(int unit, Segment segment) override { return parameters_.slice(unit, segment); }
  ConstTensorView summed_gradients(int unit, Segment segment) override { return sum(unit, segment); }
  ConstTensorView summed_slice(int unit, Segment segment) override { return sum(unit, segment); }
  void publish(int unit, Changed changed) override { parameters_.gather(unit, changed); }

 protected:
  void on_acquire(int unit) override { parameters_.wait_until_gathered(unit); }
  ConstTensorView readable_parameters(int unit, Segment segment) const override {
    return parameters_.view(unit, segment);
  }
  TensorView gradient_memory(int unit, Segment segment) override {
    if (ring_) return ring_->memory(unit, segment);
    Unread& unread = unread_.at(static_cast<std::size_t>(unit));
    wait_until_reusable(context(), unread.reduced, unread.ticket);
    unread = {};
    return gradients_.view(unit, segment);
  }

 private:
  struct Unread {
    Ticket ticket;
    Event reduced;
  };
  TensorView sum(int unit, Segment segment) const {
    return sums_ ? sums_->view(unit, segment) : gradients_.slice(unit, segment);
  }

  WholeParameters parameters_;
  SharedSegments gradients_;
  std::unique_ptr<SliceSums> sums_;     // null: the slice of the gradients themselves
  std::unique_ptr<GradientRing> ring_;  // in local order
  std::vector<Unread> unread_;          // by unit
};

}  // namespace

std::unique_ptr<Engine> make_stage1(const EngineContext& context) { return std::make_unique<Stage1>(context); }

}  // namespace zt
