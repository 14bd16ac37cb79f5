#include "zero/state_store.h"

#include <algorithm>

namespace zt {

int kept_moments(const Optimizer& optimizer, const TensorPlace& tensor) {
  const MatrixRule* const rule = optimizer.matrix_rule();
  return rule != nullptr && updates_whole(tensor) ? rule->moments() : optimizer.moments();
}

MomentsPerParameter moments_per_parameter(const Optimizer& optimizer, const Layout& layout) {
  MomentsPerParameter mean(optimizer.moments());
  for (const Segment segment : trained_segments) {
    std::int64_t parameters = 0;
    std::int64_t moments = 0;
    for (const TensorPlace& tensor : layout.tensors()) {
      if (tensor.segment != segment) continue;
      parameters += tensor.count;
      moments += tensor.count * kept_moments(optimizer, tensor);
    }
    if (parameters > 0) mean.of(segment) = static_cast<double>(moments) / static_cast<double>(parameters);
  }
  return mean;
}

DeviceStateStore::DeviceStateStore(const Engine& engine, const Optimizer& optimizer)
    : optimizer_(optimizer),
      masters_(engine.context().layout, engine.updated_extent(), master_formats(engine.context().precision),
               [resting = parameter_formats(engine.context().precision), master = engine.context().precision.master](
                   int /*unit*/, Segment segment) {
                 // What is computed with is as good as a master unless that is wider.
                 return is_trained(segment) && size_of(master) > size_of(resting.at(static_cast<std::size_t>(segment)));
               }) {
  Device& device = engine.context().device;
  const Layout& layout = engine.context().layout;
  if (masters_.bytes() > 0) {
    master_buffer_ = device.allocate(masters_.bytes(), MemoryCategory::optimizer, "masters");
    device.ledger().add_padding(masters_.padding_bytes());
  }
  for (const float initial : optimizer.initial_moments()) {
    const auto number = static_cast<int>(moments_.size());
    const auto is_kept = [&](int unit, Segment segment) {
      const std::vector<int>& tensors = layout.unit(unit).segment(segment).tensors;
      return is_trained(segment) && std::any_of(tensors.begin(), tensors.end(),
                                                [&](int tensor) { return keeps(number, layout.tensor(tensor)); });
    };
    Moment& moment = moments_.emplace_back(
        Moment{{layout, engine.updated_extent(), moment_formats(engine.context().precision), is_kept}, {}});
    const Arrangement& arrangement = moment.arrangement;
    moment.buffer =
        device.allocate(arrangement.bytes(), MemoryCategory::optimizer, "moment " + std::to_string(number + 1));
    device.ledger().add_padding(arrangement.padding_bytes());
    if (initial == 0.0F) continue;  // memory comes zeroed
    for (int unit = 0; unit < static_cast<int>(layout.units().size()); ++unit) {
      for (const Segment segment : trained_segments) {
        if (!arrangement.has(unit, segment)) continue;
        device.run(Stream::compute,
                   Fill{.out = arrangement.view(moment.buffer.data(), unit, segment), .value = initial});
      }
    }
  }
}

BorrowedState DeviceStateStore::borrow(int unit, Segment segment) {
  BorrowedState state;
  if (masters_.has(unit, segment)) state.master = masters_.view(master_buffer_.data(), unit, segment);
  for (std::size_t moment = 0; moment < moments_.size(); ++moment) {
    const auto& [arrangement, buffer] = moments_[moment];
    if (arrangement.has(unit, segment)) state.moments.at(moment) = arrangement.view(buffer.data(), unit, segment);
  }
  return state;
}

}  // namespace zt
