#include "zero/engine.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/errors.h"

namespace zt {

Engine::Engine(EngineContext context)
    : context_(std::move(context)),
      contributed_(context_.layout.tensors().size(), false),
      given_(context_.layout.tensors().size()) {
  std::int64_t largest_slice = 0;  // bytes
  for (const UnitLayout& unit : context_.layout.units()) {
    for (const SegmentLayout& segment : unit.segments) largest_slice = std::max(largest_slice, segment.slice * 4);
  }
  context_.communicator.reserve(context_.device, largest_slice);
}

void Engine::begin_micro_step(std::int64_t index) {
  micro_step_ = index;
  contributed_.assign(contributed_.size(), false);
}

void Engine::begin(Pass pass) {
  order_ = &model_->order(pass);
  on_begin(pass);
}

GradientView Engine::gradient(int unit, int tensor) {
  const int index = layout().unit(unit).tensors.at(static_cast<std::size_t>(tensor));
  const TensorPlace& place = layout().tensor(index);
  const TensorView view = gradient_memory(unit, place.segment).part(place.offset, place.count);
  const bool add = contributed_.at(static_cast<std::size_t>(index));
  contributed_.at(static_cast<std::size_t>(index)) = true;
  given_.at(static_cast<std::size_t>(index)) = {view, ++serial_};
  return {view, add};
}

std::string Engine::gradient_at(const void* address) const {
  const std::less<const void*> before;
  std::int64_t latest = 0;
  std::string name;
  for (std::size_t tensor = 0; tensor < given_.size(); ++tensor) {
    const Given& given = given_[tensor];
    const void* end = static_cast<const std::byte*>(given.view.data) + given.view.bytes();
    if (given.serial <= latest || before(address, given.view.data) || !before(address, end)) continue;
    latest = given.serial;
    name = layout().tensors()[tensor].name;
  }
  return name;
}

ConstTensorView Engine::parameter(int unit, int tensor) const {
  const TensorPlace& place = layout().tensor(layout().unit(unit).tensors.at(static_cast<std::size_t>(tensor)));
  return readable_parameters(unit, place.segment).part(place.offset, place.count);
}

bool Engine::sums_in_place() const {
  return context_.accumulation == 1 && precision().accumulator == precision().gradient &&
         precision().vector_accumulator() == precision().vector_gradient();
}

std::pair<std::int64_t, std::int64_t> Engine::slice_range(int unit, Segment segment) const {
  const std::int64_t slice = layout().unit(unit).segment(segment).slice;
  return {communicator().rank() * slice, (communicator().rank() + 1) * slice};
}

std::pair<std::int64_t, std::int64_t> Engine::updated_range(int unit, Segment segment) const {
  if (updated_extent() == Extent::slice) return slice_range(unit, segment);
  return {0, layout().unit(unit).segment(segment).elements};
}

std::unique_ptr<Engine> make_engine(const EngineContext& context) {
  switch (context.zero.stage) {
    case 0: return make_stage0(context);
    case 1: return make_stage1(context);
    case 2: return make_stage2(context);
    case 3: return make_stage3(context);
    default: throw UserError("zero_optimization.stage must be 0, 1, 2 or 3");
  }
}

double formula_bytes_per_parameter(int stage, int ranks, const Precision& precision, std::int64_t accumulation,
                                   int optimizer_moments) {
  const auto bytes = [](DType type) { return static_cast<double>(size_of(type)); };
  const double parameter = bytes(precision.parameter);
  const double gradient = bytes(precision.gradient);
  const double sum = bytes(precision.accumulator);
  const double state = (precision.master == precision.parameter ? 0.0 : bytes(precision.master)) +
                       optimizer_moments * bytes(precision.moment);
  const bool separate_sums = accumulation > 1 || precision.accumulator != precision.gradient;
  const double n = ranks;
  switch (stage) {
    case 0: return parameter + sum + state;
    case 1: return parameter + gradient + ((separate_sums ? sum : 0.0) + state) / n;
    case 2: return parameter + (sum + state) / n;
    default: return (parameter + sum + state) / n;
  }
}

double paper_elements_per_parameter(int stage, int ranks, std::int64_t accumulation) {
  const auto micro_steps = static_cast<double>(accumulation);
  const double share = (ranks - 1.0) / ranks;
  return (stage == 3 ? 3.0 * micro_steps : micro_steps + 1.0) * share;
}

}  // namespace zt
