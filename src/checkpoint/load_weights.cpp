#include "checkpoint/load_weights.h"

#include <algorithm>
#include <unordered_map>

#include "checkpoint/stored_type.h"
#include "comm/agree.h"
#include "zero/finish_step.h"

namespace zt {

void load_weights(Engine& engine, StateStore& states, const WeightSource& source) {
  const Layout& layout = engine.context().layout;
  Device& device = engine.context().device;
  std::vector<WeightSource::Tensor> model;
  std::unordered_map<const TensorPlace*, std::size_t> places;  // -> index into `model`
  for (const TensorPlace& tensor : layout.tensors()) {
    places.emplace(&tensor, model.size());
    model.push_back({tensor.name, tensor.shape});
  }
  const std::vector<std::size_t> matched = match_tensors(model, source);
  Communicator& communicator = engine.context().communicator;
  all_or_none<RunError>(communicator, [&] { source.verify(communicator.rank(), communicator.size()); });

  constexpr std::int64_t piece = 1 << 20;  // elements
  const Buffer staging = device.allocate_host(piece * static_cast<std::int64_t>(sizeof(float)), "weights being loaded");
  auto* values = staging.as<float>();
  visit_weights(engine, states, [&](const TensorPlace& tensor, std::int64_t offset, TensorView weights) {
    const std::size_t from = matched[places.at(&tensor)];
    for (std::int64_t done = 0; done < weights.count;) {
      const std::int64_t count = std::min(piece, weights.count - done);
      source.read(from, offset + done, count, values);
      refuse_not_finite(source, source.tensors()[from], offset + done, values, count);
      if (weights.dtype != DType::f32) from_floats(values, count, weights.dtype, values);  // shrinks in place
      const TensorView to = weights.part(done, count);
      device.copy(Stream::compute, to.data, values, to.bytes());
      device.synchronize(Stream::compute);  // the buffer is written again
      done += count;
    }
  });
  publish_weights(engine, states);
}

}  // namespace zt
