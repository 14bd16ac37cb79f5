#include "zero/state_store.h"

namespace zt {

DeviceStateStore::DeviceStateStore(const Engine& engine, int moments)
    : masters_(engine.context().layout, engine.updated_extent(), master_formats(engine.context().precision),
               [resting = parameter_formats(engine.context().precision), master = engine.context().precision.master](
                   int /*unit*/, Segment segment) {
                 // What is computed with is as good as a master unless that is wider.
                 return is_trained(segment) && size_of(master) > size_of(resting.at(static_cast<std::size_t>(segment)));
               }),
      moments_(engine.context().layout, engine.updated_extent(), moment_formats(engine.context().precision),
               Arrangement::trained),
      moment_count_(moments) {
  Device& device = engine.context().device;
  if (masters_.bytes() > 0) {
    master_buffer_ = device.allocate(masters_.bytes(), MemoryCategory::optimizer, "masters");
    device.ledger().add_padding(masters_.padding_bytes());
  }
  for (int moment = 0; moment < moments; ++moment) {
    moment_buffers_.at(static_cast<std::size_t>(moment)) =
        device.allocate(moments_.bytes(), MemoryCategory::optimizer, "moment " + std::to_string(moment + 1));
    device.ledger().add_padding(moments_.padding_bytes());
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
