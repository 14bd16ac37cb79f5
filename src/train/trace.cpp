#include "train/trace.h"

#include <optional>
#include <string>
#include <variant>

#include "comm/communicator_decorator.h"
#include "device/device_decorator.h"

namespace zt {

namespace {

class TracingDevice final : public DeviceDecorator {
 public:
  TracingDevice(Device& inner, TraceRecorder& recorder) : DeviceDecorator(inner), recorder_(recorder) {}

  void run(Stream stream, const Operation& operation) override {
    if (!recorder_.recording()) return inner().run(stream, operation);
    TraceRecorder::Span span;
    span.stream = stream;
    span.name = zt::name_of(operation);
    span.flops = product_flops(operation);
    if (const auto* product = std::get_if<MatMul>(&operation)) span.shape = {product->m, product->n, product->k};
    const auto index = recorder_.begin(span);
    inner().run(stream, operation);
    recorder_.end(index);
  }
  void copy(Stream stream, void* to, const void* from, std::int64_t bytes) override {
    if (!recorder_.recording()) return inner().copy(stream, to, from, bytes);
    TraceRecorder::Span span;
    span.kind = TraceRecorder::Span::Kind::copy;
    span.stream = stream;
    span.name = "copy";
    span.bytes = bytes;
    const auto index = recorder_.begin(span);
    inner().copy(stream, to, from, bytes);
    recorder_.end(index);
  }
  void begin_activity(Activity activity, std::int64_t number) override {
    recorder_.begin_activity(activity, number);
    inner().begin_activity(activity, number);
  }
  void end_activity(Activity activity, std::int64_t number) override {
    recorder_.end_activity(activity, number);
    inner().end_activity(activity, number);
  }

 private:
  TraceRecorder& recorder_;
};

class TracingCommunicator final : public CommunicatorDecorator {
 public:
  TracingCommunicator(Communicator& inner, TraceRecorder& recorder)
      : CommunicatorDecorator(inner), recorder_(recorder) {}

  Ticket all_gather(Device& device, Stream stream, const Region& from, TensorView to) override {
    const auto span = begin(CollectiveKind::all_gather, stream, to.bytes() / size() * others());
    const Ticket ticket = inner().all_gather(device, stream, from, to);
    recorder_.end(span);
    return ticket;
  }
  Ticket reduce_scatter(Device& device, Stream stream, const Region& from, DType dtype, TensorView acc,
                        bool first) override {
    const auto span =
        begin(CollectiveKind::reduce_scatter, stream, acc.count * static_cast<std::int64_t>(size_of(dtype)) * others());
    const Ticket ticket = inner().reduce_scatter(device, stream, from, dtype, acc, first);
    recorder_.end(span);
    return ticket;
  }
  Ticket all_to_all(Device& device, Stream stream, const Region& from, const OwnerBlocks& blocks,
                    TensorView to) override {
    const auto span = begin(CollectiveKind::all_to_all, stream,
                            blocks.sent_by(rank()) * static_cast<std::int64_t>(size_of(to.dtype)));
    const Ticket ticket = inner().all_to_all(device, stream, from, blocks, to);
    recorder_.end(span);
    return ticket;
  }
  void all_reduce_sum(std::span<std::int64_t> values) override {
    const auto span =
        begin(CollectiveKind::all_reduce, Stream::compute, static_cast<std::int64_t>(values.size_bytes()) * others());
    inner().all_reduce_sum(values);
    recorder_.end(span);
  }
  void sum_on_device(Device& device, Stream stream, std::int64_t* values, std::int64_t count) override {
    const auto span = begin(CollectiveKind::all_reduce, stream, count * 8 * others());
    inner().sum_on_device(device, stream, values, count);
    recorder_.end(span);
  }
  void broadcast(std::span<std::byte> bytes, int root) override { inner().broadcast(bytes, root); }

 private:
  std::optional<std::size_t> begin(CollectiveKind kind, Stream stream, std::int64_t bytes_sent) {
    TraceRecorder::Span span;
    span.kind = TraceRecorder::Span::Kind::collective;
    span.stream = stream;
    span.name = name_of(kind);
    span.bytes = bytes_sent;
    return recorder_.begin(span);
  }

  TraceRecorder& recorder_;
};

}  // namespace

Trace::Trace(Device& device, Communicator& communicator)
    : recorder_(std::make_unique<TraceRecorder>(device)),
      device_(std::make_unique<TracingDevice>(device, *recorder_)),
      communicator_(std::make_unique<TracingCommunicator>(communicator, *recorder_)) {}

// The barrier lets the clocks of all ranks start together.
void Trace::start() {
  communicator_->barrier();
  recorder_->start();
}

}  // namespace zt
