#include "inference/weights.h"

#include <algorithm>
#include <stdexcept>

#include "checkpoint/load_state.h"
#include "checkpoint/stored_type.h"

namespace zt {

InferenceWeights::InferenceWeights(Device& device, const std::vector<UnitSpec>& units, const Precision& precision)
    : device_(device),
      layout_(units, 1),
      arrangement_(layout_, Extent::whole, parameter_formats(precision)),
      buffer_(device.allocate(arrangement_.bytes(), MemoryCategory::parameters, "parameters")) {}

TensorView InferenceWeights::view(const TensorPlace& place) const {
  return arrangement_.view(buffer_.data(), place.unit, place.segment).part(place.offset, place.count);
}

ConstTensorView InferenceWeights::parameter(int unit, int tensor) const {
  return view(layout_.tensor(layout_.unit(unit).tensors.at(static_cast<std::size_t>(tensor))));
}

GradientView InferenceWeights::gradient(int /*unit*/, int /*tensor*/) {
  throw std::logic_error("inference has no gradients");
}

void InferenceWeights::gradients_ready(int /*unit*/) { throw std::logic_error("inference has no gradients"); }

void InferenceWeights::fill(const ReadTensor& read) {
  constexpr std::int64_t at_once = std::int64_t{1} << 18;
  const Buffer staging = device_.allocate_host(2 * 4 * at_once, "checkpoint staging");
  auto* const values = staging.as<float>();
  void* const raw = values + at_once;
  for (const TensorPlace& place : layout_.tensors()) {
    const TensorView to = view(place);
    for (std::int64_t done = 0; done < to.count; done += at_once) {
      const TensorView part = to.part(done, std::min(at_once, to.count - done));
      read(place, done, part.count, values);
      from_floats(values, part.count, part.dtype, raw);
      device_.copy(Stream::compute, part.data, raw, part.bytes());
      device_.synchronize(Stream::compute);
    }
  }
}

void InferenceWeights::load(const NativeCheckpoint& checkpoint) {
  require_same_tensors(layout_, checkpoint);
  checkpoint.verify_weights();
  fill([&](const TensorPlace& place, std::int64_t first, std::int64_t count, float* out) {
    checkpoint.read(weights_kind, checkpoint.manifest().tensor_index(place.name), first, count, out);
  });
}

void InferenceWeights::load(const WeightSource& source) {
  std::vector<WeightSource::Tensor> model;
  for (const TensorPlace& place : layout_.tensors()) model.push_back({place.name, place.shape});
  const std::vector<std::size_t> matched = match_tensors(model, source);
  fill([&](const TensorPlace& place, std::int64_t first, std::int64_t count, float* out) {
    const std::size_t tensor = matched[static_cast<std::size_t>(&place - layout_.tensors().data())];
    source.read(tensor, first, count, out);
    refuse_not_finite(source, source.tensors()[tensor], first, out, count);
  });
}

}  // namespace zt
