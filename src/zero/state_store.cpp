#include "zero/state_store.h"

namespace zt {

namespace {

DType resting_dtype(const Precision& precision, Segment segment) {
  return segment == Segment::matrices ? precision.parameter : precision.vectors;
}

}  // namespace

DeviceStateStore::DeviceStateStore(const Engine& engine, const std::vector<float>& initial_moments)
    : masters_(engine.context().layout, engine.updated_extent(), engine.context().precision.master,
               engine.context().precision.master,
               [&](int /*unit*/, Segment segment) {
                 const Precision& precision = engine.context().precision;
                 return resting_dtype(precision, segment) != precision.master;
               }),
      moments_(engine.context().layout, engine.updated_extent(), engine.context().precision.moment,
               engine.context().precision.moment),
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
    const DType dtype = engine.context().precision.moment;
    const TensorView all(buffer.data(), buffer.bytes() / static_cast<std::int64_t>(size_of(dtype)), dtype);
    device.run(Stream::compute, Fill{.out = all, .value = initial_moments[moment]});
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
