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
  if (!is_trained(place.segment)) return {};
  const TensorView view = gradient_memory(unit, place.segment).part(place.offset, place.count);
  const bool add = contributed_.at(static_cast<std::size_t>(index));
  contributed_.at(static_cast<std::size_t>(index)) = true;
  given_.at(static_cast<std::size_t>(index)) = {view, ++serial_};
  return {view, add};
}

void Engine::acquire(int unit) {
  on_acquire(unit);
  device().begin_activity(Activity::compute, unit);
}

void Engine::release(int unit) {
  device().end_activity(Activity::compute, unit);
  on_release(unit);
}

void Engine::gradients_ready(int unit) {
  if (!layout().unit(unit).trains()) return;
  const ActivitySpan span(device(), Activity::reduce, unit);
  reduce_gradients(unit);
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
         precision().vector_accumulator == precision().vector_gradient;
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

namespace {

double bytes_of_trained(int stage, double n, DType parameter_format, DType gradient_format, DType sum_format,
                        DType master_format, DType moment_format, std::int64_t accumulation, double moments,
                        AccumulationOrder order) {
  const auto bytes = [](DType type) { return static_cast<double>(size_of(type)); };
  const double parameter = bytes(parameter_format);
  const double gradient = bytes(gradient_format);
  const double sum = bytes(sum_format);
  const double master = bytes(master_format) > parameter ? bytes(master_format) : 0.0;
  const double state = master + moments * bytes(moment_format);
  const bool separate_sums = accumulation > 1 || sum_format != gradient_format;
  switch (stage) {
    case 0: return parameter + sum + state;
    case 1:
      if (order == AccumulationOrder::local) return parameter + sum + state / n;
      return parameter + gradient + ((separate_sums ? sum : 0.0) + state) / n;
    case 2: return parameter + (sum + state) / n;
    default: return (parameter + sum + state) / n;
  }
}

double trained_share(const ParametersBySegment& parameters) {
  double all = 0.0;
  double trained = 0.0;
  for (const Segment segment : all_segments) {
    const auto count = static_cast<double>(parameters.at(static_cast<std::size_t>(segment)));
    all += count;
    if (is_trained(segment)) trained += count;
  }
  return trained / all;
}

}  // namespace

double formula_bytes_per_parameter(int stage, int ranks, const Precision& precision, std::int64_t accumulation,
                                   const MomentsPerParameter& moments, const ParametersBySegment& parameters,
                                   AccumulationOrder order) {
  const double n = ranks;
  order = order_in_effect(order, stage, accumulation);
  const auto bytes_in = [&](Segment segment) {
    const auto index = static_cast<std::size_t>(segment);
    const DType at_rest = parameter_formats(precision).at(index);
    if (!is_trained(segment)) return static_cast<double>(size_of(at_rest)) / (stage == 3 ? n : 1.0);
    return bytes_of_trained(stage, n, at_rest, gradient_formats(precision).at(index),
                            accumulator_formats(precision).at(index), precision.master,
                            moment_formats(precision).at(index), accumulation, moments.of(segment), order);
  };
  // As differences from the matrices' bytes, so that the mean of equal ones is exact.
  const double of_matrices = bytes_in(Segment::matrices);
  double more = 0.0;
  double count = 0.0;
  for (const Segment segment : all_segments) {
    const auto here = static_cast<double>(parameters.at(static_cast<std::size_t>(segment)));
    more += (bytes_in(segment) - of_matrices) * here;
    count += here;
  }
  return of_matrices + more / count;
}

double matrix_elements_per_parameter(int stage, const Layout& layout) {
  if (stage == 0) return 0.0;
  std::int64_t elements = 0;
  for (const TensorPlace& tensor : layout.tensors()) elements += updates_whole(tensor) ? tensor.count : 0;
  const double share = static_cast<double>(elements) / static_cast<double>(layout.parameters());
  const double ranks = layout.ranks();
  return 2.0 * share / ranks * ((ranks - 1.0) / ranks);
}

double paper_elements_per_parameter(int stage, int ranks, std::int64_t accumulation,
                                    const ParametersBySegment& parameters, AccumulationOrder order) {
  const auto micro_steps = static_cast<double>(accumulation);
  const double reductions = order_in_effect(order, stage, accumulation) == AccumulationOrder::local ? 1.0 : micro_steps;
  const double trained = trained_share(parameters);
  const double elements = stage == 3 ? (2.0 + trained) * micro_steps : (reductions + 1.0) * trained;
  return elements * ((ranks - 1.0) / ranks);
}

}  // namespace zt
