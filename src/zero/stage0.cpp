// Stage 0: every rank holds everything. Gradients are summed onto slices and the sums gathered, which is what an
// all-reduce does, with the order of the additions kept. Every rank updates all parameters; nothing is published.
// In local order the sums, which are whole anyway, are first those of this rank's own micro-batches.
#include "zero/parts.h"

namespace zt {

namespace {

class Stage0 final : public Engine {
 public:
  explicit Stage0(const EngineContext& given)
      : Engine(given),
        arrangement_(layout(), Extent::whole, parameter_formats(precision())),
        parameters_(device().allocate(arrangement_.bytes(), MemoryCategory::parameters, "parameters")),
        sums_(context(), Extent::whole, MemoryCategory::gradients, "gradients", accumulator_formats(precision()),
              Arrangement::trained) {
    device().ledger().add_padding(arrangement_.padding_bytes());
    if (!sums_in_place()) ring_ = std::make_unique<GradientRing>(context());
  }

  void reduce_gradients(int unit) override {
    if (sums_locally()) {
      ring_->add_to(unit, first_micro_step(), [&](Segment segment) { return sums_.view(unit, segment); });
      if (last_micro_step()) reduce_sums(context(), unit, sums_);
    } else {
      reduce_micro_batch(unit);
    }
    if (!last_micro_step()) return;
    for (const Segment segment : trained_segments) {
      if (layout().unit(unit).segment(segment).elements == 0) continue;
      communicator().all_gather(device(), Stream::reduce, sums_.region(unit, segment), sums_.view(unit, segment));
    }
  }

  Extent updated_extent() const override { return Extent::whole; }
  TensorView resting_parameters(int unit, Segment segment) override {
    return arrangement_.view(parameters_.data(), unit, segment);
  }
  ConstTensorView summed_gradients(int unit, Segment segment) override { return sums_.view(unit, segment); }
  ConstTensorView summed_slice(int unit, Segment segment) override { return sums_.slice(unit, segment); }
  void publish(int /*unit*/, Changed /*changed*/) override {}

 protected:
  ConstTensorView readable_parameters(int unit, Segment segment) const override {
    return arrangement_.view(parameters_.data(), unit, segment);
  }
  TensorView gradient_memory(int unit, Segment segment) override {
    return ring_ ? ring_->memory(unit, segment) : sums_.view(unit, segment);
  }

 private:
  void reduce_micro_batch(int unit) {
    const auto region = [&](Segment segment) {
      return ring_ ? ring_->region(unit, segment) : sums_.region(unit, segment);
    };
    const Ticket ticket = reduce_unit(context(), unit, first_micro_step(), gradient_formats(precision()), region,
                                      [&](Segment segment) { return sums_.slice(unit, segment); });
    if (ring_) ring_->reduced(unit, ticket);
  }

  Arrangement arrangement_;
  Buffer parameters_;
  SharedSegments sums_;
  std::unique_ptr<GradientRing> ring_;  // null: gradients are made where their sums are
};

}  // namespace

std::unique_ptr<Engine> make_stage0(const EngineContext& context) { return std::make_unique<Stage0>(context); }

}  // namespace zt
