#include "zero/state_store.h"

namespace zt {

DeviceStateStore::DeviceStateStore(const Engine& engine, const std::vector<float>& initial_moments)
    : masters_(engine.context().layout, engine.updated_extent(), master_formats(engine.context().precision),
               [resting = parameter_formats(engine.context().precision), master = engine.context().precision.master](
                   int /*unit*/, Segment segment) {
                 // What is computed with is as good as a master unless that is wider.
                 return is_trained(segment) && size_of(master) > size_of(resting.at(static_cast<std::size_t>(segment)));
               }),
      moments_(engine.context().layout, engine.updated_extent(), moment_formats(engine.context().precision),
               Arrangement::trained),
      moment_count_(static_cast<int>(initial_moments.size())) {
  Device& device = engine.context().device;
  if (masters_.bytes() > 0) {
    master_buffer_ = device.allocate(masters_.bytes(), MemoryCategory::optimizer, "masters");
    device.ledger().add_padding(masters_.padding_bytes());
  }
  for (std::size_t moment = 0; moment < initial_moments.size(); ++moment) {
    Buffer& buffer = moment_buffers_.at(moment);
    buffer = device.allocate(moments_.bytes(), MemoryCategory::optimizer, "moment " + std::to_string(moment + 1));
    device.ledger().add_padding(moments_.padding_bytes());
    if (initial_moments[moment] == 0.0F) continue;  // memory comes zeroed
    const auto units = static_cast<int>(engine.context().layout.units().size());
    for (int unit = 0; unit < units; ++unit) {
      for (const Segment segment : trained_segments) {
        if (!moments_.has(unit, segment)) continue;
        const TensorView values = moments_.view(buffer.data(), unit, segment);
        device.run(Stream::compute, Fill{.out = values, .value = initial_moments[moment]});
      }
    }
  }
}

BorrowedState DeviceStateStore::borrow(int unit, Segment segment) {
  BorrowedState state;
  if (masters_.has(unit, segment)) state.master = masters_.view(master_buffer_.data(), unit, segment);
  for (int moment = 0; moment < moment_count_; ++moment) {
    const auto index = static_cast<std::size_t>(moment);
    state.moments.at(index) = moments_.view(moment_buffers_.at(index).data(), unit, segment);
  }
  return state;
}

}  // namespace zt
