// Events around collectives on device buffers, removed one at a time: each removal must show, or a test with all of
// them would prove nothing.
#include "catch_compat.h"
#include "comm/staged.h"
#include "communicator_checks.h"
#include "nccl_ranks.h"

using namespace zt;
using namespace zt::test;
using zt::emulation::Configured;
using zt::emulation::Streams;

namespace {

enum class Without {
  nothing,
  before,   // the collective waits for what it sends
  after,    // what is done with the result waits for the collective
  reusing,  // the source is written again only after the collective
};

enum class Kind { all_gather, reduce_scatter, all_to_all };

// How many values of the result are wrong on rank 0 of 2, where `early` runs as early as its events allow: the host
// waits for it first.
int wrong_values(Communicator& c, Device& device, Kind kind, Without without, Stream early) {
  constexpr std::int64_t slice = 64;
  const bool gathers = kind == Kind::all_gather;
  const bool sums = kind == Kind::reduce_scatter;
  const std::int64_t sent = gathers ? slice : 2 * slice;
  const std::int64_t received = sums ? slice : 2 * slice;
  const std::array<std::int64_t, 2> counts = {slice, slice};
  auto source = c.allocate(device, sent * 4, MemoryCategory::gradients, "source");
  const Buffer result = device.allocate(received * 4, MemoryCategory::gradients, "result");
  const Buffer first = device.allocate_host(sent * 4, "first values");
  const Buffer second = device.allocate_host(sent * 4, "second values");
  const Buffer seen = device.allocate_host(received * 4, "seen");
  for (std::int64_t i = 0; i < sent; ++i) {
    first.as<float>()[i] = static_cast<float>(c.rank() + 1);
    second.as<float>()[i] = -1.0F;
  }
  const Stream stream = gathers ? Stream::gather : Stream::reduce;
  device.copy(Stream::compute, source->data(), first.data(), first.bytes());
  if (without != Without::before) device.wait(stream, device.record(Stream::compute));
  if (gathers) {
    c.all_gather(device, stream, {source.get(), 0, 0}, result.view(DType::f32));
  } else if (kind == Kind::all_to_all) {
    c.all_to_all(device, stream, {source.get(), 0, slice * 4}, {counts, true}, result.view(DType::f32));
  } else {
    c.reduce_scatter(device, stream, {source.get(), 0, slice * 4}, DType::f32, result.view(DType::f32), true);
  }
  const Event done = device.record(stream);
  if (without != Without::after) device.wait(Stream::copy, done);
  device.copy(Stream::copy, seen.data(), result.data(), result.bytes());
  if (without != Without::reusing) device.wait(Stream::compute, done);
  device.copy(Stream::compute, source->data(), second.data(), second.bytes());
  for (const Stream next : {early, Stream::compute, Stream::copy, stream}) device.synchronize(next);
  int wrong = 0;
  for (std::int64_t i = 0; i < received; ++i) {
    const float expected = sums ? 3.0F : static_cast<float>(i / slice + 1);
    wrong += seen.as<float>()[i] == expected ? 0 : 1;
  }
  c.barrier();
  return wrong;
}

enum class Way { nccl, staged };

int wrong_values(Way way, Kind kind, Without without, Stream early) {
  const Configured configured(gpus(2, Streams::lazy));
  int wrong = -1;
  run_ranks_as_threads(2, 0, [&](Communicator& host) {
    cuda::CudaDevice device(way == Way::nccl ? host.rank() : 0, {});
    std::unique_ptr<Communicator> c;
    if (way == Way::nccl) {
      c = std::make_unique<cuda::NcclCommunicator>(host, device, hasty());
    } else {
      c = std::make_unique<StagedCommunicator>(host);
    }
    const int here = wrong_values(*c, device, kind, without, early);
    if (host.rank() == 0) wrong = here;
  });
  return wrong;
}

}  // namespace

TEST_CASE("a removed event around a collective shows in lazy streams") {
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all}) {
    for (const Way way : {Way::nccl, Way::staged}) {
      CAPTURE(static_cast<int>(kind), static_cast<int>(way));
      const Stream stream = kind == Kind::all_gather ? Stream::gather : Stream::reduce;
      for (const Stream early : {stream, Stream::copy, Stream::compute}) {
        CHECK(wrong_values(way, kind, Without::nothing, early) == 0);
      }
      CHECK(wrong_values(way, kind, Without::before, stream) > 0);
      CHECK(wrong_values(way, kind, Without::after, Stream::copy) > 0);
      // The staged one has read its source when it returns.
      CHECK((wrong_values(way, kind, Without::reusing, Stream::compute) > 0) == (way == Way::nccl));
    }
  }
}
