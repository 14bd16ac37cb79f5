// A GPU as a device: memory, copies, streams and events.
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "core/errors.h"
#include "cuda/operation_check.h"

namespace zt::test {
namespace {

constexpr std::int64_t count = 1000;
constexpr auto bytes = static_cast<std::int64_t>(count * sizeof(float));

std::vector<float> numbers(float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

Buffer on_device(Device& device, const char* name = "test") {
  return device.allocate(bytes, MemoryCategory::data, name);
}

std::vector<float> read(Device& device, const Buffer& buffer) {
  std::vector<float> values(count);
  device.copy(Stream::copy, values.data(), buffer.data(), bytes);
  device.synchronize(Stream::copy);
  return values;
}

}  // namespace

TEST_CASE("a GPU's memory is zeroed, aligned, and on the ledger until it is given back") {
  const auto gpu = open_gpu();
  for (const std::int64_t size : {0, 1, 1000, 3 << 20}) {
    Buffer buffer = gpu->allocate(size, MemoryCategory::gradients, "test");
    CHECK(buffer.bytes() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256 == 0);
    CHECK(gpu->ledger().total() == size);
    std::vector<char> values(static_cast<std::size_t>(size), 1);
    gpu->copy(Stream::compute, values.data(), buffer.data(), size);
    gpu->synchronize(Stream::compute);
    CHECK(values == std::vector<char>(static_cast<std::size_t>(size), 0));
    buffer = {};
    CHECK(gpu->ledger().total() == 0);
  }
  CHECK_THROWS_AS(gpu->allocate(-1, MemoryCategory::data, "negative"), std::logic_error);
}

TEST_CASE("a buffer may live longer than its GPU") {
  Buffer buffer;
  Buffer host;
  {
    const auto gpu = open_gpu();
    buffer = on_device(*gpu);
    host = gpu->allocate_host(bytes, "test");
  }
  buffer = {};
  host = {};
  CHECK(!buffer);
}

TEST_CASE("copies go in all directions, from pinned and other memory") {
  const auto gpu = open_gpu();
  const Buffer pinned = gpu->allocate_host(bytes, "pinned");
  CHECK(std::vector<float>(pinned.as<float>(), pinned.as<float>() + count) == std::vector<float>(count, 0.0F));
  const Buffer a = on_device(*gpu);
  const Buffer b = on_device(*gpu);
  const std::vector<float> values = numbers(1.0F);
  std::memcpy(pinned.data(), values.data(), static_cast<std::size_t>(bytes));
  gpu->copy(Stream::copy, a.data(), pinned.data(), bytes);  // pinned to device
  gpu->copy(Stream::copy, b.data(), a.data(), bytes);       // device to device
  gpu->synchronize(Stream::copy);
  CHECK(read(*gpu, b) == values);  // device to pageable

  const std::vector<float> others = numbers(-5.0F);
  gpu->copy(Stream::copy, a.data(), others.data(), bytes);  // pageable to device
  gpu->copy(Stream::copy, pinned.data(), a.data(), bytes);  // device to pinned
  std::vector<float> copied(count);
  gpu->synchronize(Stream::copy);
  gpu->copy(Stream::copy, copied.data(), pinned.data(), bytes);  // host to host
  gpu->synchronize(Stream::copy);
  CHECK(copied == others);
  gpu->copy(Stream::copy, nullptr, nullptr, 0);
}

TEST_CASE("streams are ordered by events") {
  const auto gpu = open_gpu();
  const Buffer a = on_device(*gpu);
  const Buffer b = on_device(*gpu);
  // A chain over three streams, again and again, each link waiting for the one before and for b to have been read.
  Event read_event;
  for (int round = 1; round <= 5; ++round) {
    const auto value = static_cast<float>(round);
    gpu->run(Stream::gather, Fill{.out = a.view(DType::f32), .value = value});
    gpu->wait(Stream::compute, gpu->record(Stream::gather));
    gpu->wait(Stream::compute, read_event);
    gpu->run(Stream::compute, Cast{.in = a.view(DType::f32), .out = b.view(DType::f32)});
    const Event written = gpu->record(Stream::compute);
    gpu->wait(Stream::gather, written);
    gpu->wait(Stream::copy, written);
    std::vector<float> values(count);
    gpu->copy(Stream::copy, values.data(), b.data(), bytes);
    read_event = gpu->record(Stream::copy);
    gpu->synchronize(read_event);
    CHECK(values == std::vector<float>(count, value));
  }
}

TEST_CASE("events are many, used again, and can be waited for long after") {
  const auto gpu = open_gpu();
  const Buffer a = on_device(*gpu);
  const Event first = gpu->record(Stream::compute);
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) {
    if (i % 50 == 0) gpu->run(Stream::compute, Fill{.out = a.view(DType::f32), .value = static_cast<float>(i)});
    events.push_back(gpu->record(Stream::compute));
    if (i % 100 == 99) gpu->synchronize(events.back());
  }
  gpu->synchronize(events.back());
  gpu->synchronize(first);
  gpu->wait(Stream::copy, first);
  gpu->wait(Stream::copy, events[10]);
  gpu->wait(Stream::compute, events.back());
  CHECK(read(*gpu, a) == std::vector<float>(count, 250.0F));
  // Work that nobody has waited for keeps its events.
  std::vector<Event> pending;
  for (int i = 0; i < 200; ++i) {
    gpu->run(Stream::compute, Fill{.out = TensorView(a.data(), 1, DType::f32), .value = static_cast<float>(i)});
    pending.push_back(gpu->record(Stream::compute));
  }
  for (const Event event : pending) gpu->synchronize(event);
  CHECK(read(*gpu, a).front() == 199.0F);
}

TEST_CASE("only recorded events can be waited for") {
  const auto gpu = open_gpu();
  gpu->synchronize(Event{});
  gpu->wait(Stream::compute, Event{});
  const Event event = gpu->record(Stream::compute);
  CHECK_THROWS_AS(gpu->synchronize(Event{event.id + 400}), std::logic_error);
  CHECK_THROWS_AS(gpu->wait(Stream::copy, Event{event.id + 400}), std::logic_error);
  CHECK_THROWS_AS(gpu->wait(Stream::copy, Event{-5}), std::logic_error);
}

TEST_CASE("a function of the host runs when what was put on the stream before is over") {
  const auto gpu = open_gpu();
  const Buffer a = on_device(*gpu);
  const Buffer pinned = gpu->allocate_host(bytes, "pinned");
  gpu->run(Stream::reduce, Fill{.out = a.view(DType::f32), .value = 3.0F});
  gpu->copy(Stream::reduce, pinned.data(), a.data(), bytes);
  float seen = 0.0F;
  gpu->host_call(Stream::reduce, [&] {
    seen = pinned.as<float>()[count - 1];
    pinned.as<float>()[0] = 7.0F;
  });
  gpu->copy(Stream::reduce, a.data(), pinned.data(), bytes);
  gpu->synchronize(Stream::reduce);
  CHECK(seen == 3.0F);
  CHECK(read(*gpu, a).front() == 7.0F);
  CHECK_THROWS_AS(gpu->host_call(Stream::reduce, [] { throw RunError("from the host"); }), RunError);
}

TEST_CASE("scratch memory is reserved before it is used, for the compute stream alone") {
  const auto gpu = open_gpu();
  const Buffer a = on_device(*gpu);
  const TensorView view(a.data(), 16, DType::f32);
  const MatMul op{.a = view, .b = view, .out = view, .m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldc = 4};
  CHECK_THROWS_AS(gpu->run(Stream::compute, op), std::logic_error);
  gpu->prepare(op);
  gpu->reserve_workspace();
  CHECK(gpu->ledger().current().at(static_cast<std::size_t>(MemoryCategory::workspace)) > 0);
  CHECK_THROWS_AS(gpu->run(Stream::gather, op), std::logic_error);
  const std::int64_t before = gpu->ledger().total();
  gpu->reserve_workspace();  // there is enough
  CHECK(gpu->ledger().total() == before);
}

TEST_CASE("time between marks of a stream is measured on the GPU") {
  const auto gpu = open_gpu();
  const TimeMark from = gpu->mark(Stream::compute);
  const TimeMark to = gpu->mark(Stream::compute);
  gpu->synchronize(Stream::compute);
  const double seconds = gpu->seconds_between(from, to);
  CHECK(seconds >= 0.0);
  CHECK(seconds < 60.0);
}

TEST_CASE("a GPU that is not there is the user's error") {
  CHECK_THROWS_AS(zerotrain_gpu_backend()->open(1000, {}), UserError);
  CHECK_THROWS_AS(zerotrain_gpu_backend()->open(-1, {}), UserError);
}

}  // namespace zt::test
