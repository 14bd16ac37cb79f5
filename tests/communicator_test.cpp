#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "catch_compat.h"
#include "comm/counting.h"
#include "comm/threads.h"
#include "communicator_checks.h"
#include "core/errors.h"

using namespace zt;
using namespace zt::test;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("ranks as threads gather and reduce in rank order, on one node and over several") {
  for (const int ranks : {1, 2, 3, 4, 5, 7}) {
    for (const int ranks_per_node : {0, 1, 2, 3}) {
      CAPTURE(ranks, ranks_per_node);
      REQUIRE_NOTHROW(run_ranks_as_threads(ranks, ranks_per_node, [&](Communicator& c) {
        PlainDevice device;
        check_communicator(c, device, {0, 1, 5, 128, 3000});
        require(device.ledger().total() >= 0, "ledger");
      }));
    }
  }
}

TEST_CASE("a device that queues runs collectives of different streams in another order than they were asked for") {
  for (const int ranks_per_node : {0, 1, 2}) {
    CAPTURE(ranks_per_node);
    REQUIRE_NOTHROW(run_ranks_as_threads(3, ranks_per_node, [&](Communicator& c) {
      QueueingDevice device;
      check_communicator(c, device, {64});

      const std::int64_t slice = 40;
      auto gathered = c.allocate(device, 3 * slice * 4, MemoryCategory::communication, "gathered");
      auto reduced = c.allocate(device, 3 * slice * 4, MemoryCategory::communication, "reduced");
      Buffer sum = device.allocate(slice * 4, MemoryCategory::gradients, "sum");
      for (int round = 0; round < 5; ++round) {
        for (std::int64_t i = 0; i < 3 * slice; ++i) {
          gathered->view(0, 3 * slice, DType::f32).as<float>()[i] = static_cast<float>(c.rank() + round);
          reduced->view(0, 3 * slice, DType::f32).as<float>()[i] = static_cast<float>(c.rank() + 1 + round);
        }
        const Ticket r = c.reduce_scatter(device, Stream::reduce, {reduced.get(), 0, slice * 4}, DType::f32,
                                          sum.view(DType::f32), true);
        const Ticket g = c.all_gather(device, Stream::gather, {gathered.get(), 0, slice * 4},
                                      gathered->view(0, 3 * slice, DType::f32));
        device.synchronize(Stream::gather);
        const auto* all = gathered->view(0, 3 * slice, DType::f32).as<float>();
        for (std::int64_t i = 0; i < 3 * slice; ++i) {
          require(all[i] == static_cast<float>(i / slice + round), "gathered");
        }
        c.wait_until_read(r);  // runs what is queued
        require(sum.as<float>()[7] == static_cast<float>(6 + 3 * round), "reduced");
        c.wait_until_read(g);
      }
    }));
  }
}

TEST_CASE("the sum depends on the order of ranks, so the order is what the test sees") {
  int different = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    float up = value_at(0, i);
    float down = value_at(6, i);
    for (int p = 1; p < 7; ++p) up += value_at(p, i);
    for (int p = 5; p >= 0; --p) down += value_at(p, i);
    different += up != down ? 1 : 0;
  }
  CHECK(different > 200);
}

TEST_CASE("counts follow the formula and the dry run counts the same") {
  for (const int ranks : {1, 2, 5}) {
    for (const int ranks_per_node : {0, 1, 2}) {
      CAPTURE(ranks, ranks_per_node);
      REQUIRE_NOTHROW(run_ranks_as_threads(ranks, ranks_per_node, [&](Communicator& c) {
        check_counts(c, 96);
        check_counts_of_dry_run(c, 96);
      }));
    }
  }
}

TEST_CASE("the dry run takes the same memory, for any world size") {
  const auto memory_of = [](Communicator& c, PlainDevice& device) {
    auto buffer = c.allocate(device, c.size() * 400, MemoryCategory::parameters, "p");
    c.reserve(device, 1000);
    const TensorView own = buffer->view(c.rank() * 400, 100, DType::f32);
    c.reduce_scatter(device, Stream::reduce, {buffer.get(), 0, 400}, DType::f32, own, false);
    c.barrier();
    return device.ledger().buffers();
  };
  run_ranks_as_threads(4, 2, [&](Communicator& c) {
    PlainDevice device;
    PlainDevice dry_device;
    CountingCommunicator dry(c.rank(), 4, 2);
    require(memory_of(c, device) == memory_of(dry, dry_device), "memory");
  });
  PlainDevice device;
  CountingCommunicator dry(1000, 1024);
  memory_of(dry, device);
  CHECK(dry.counts().training[static_cast<std::size_t>(CollectiveKind::reduce_scatter)].elements == 1023 * 100);
  CHECK(dry.all_gather_strings("x").size() == 1024);
}

TEST_CASE("memory that is given back leaves the ledger") {
  run_ranks_as_threads(2, 0, [](Communicator& c) {
    PlainDevice device;
    {
      auto buffer = c.allocate(device, 1000, MemoryCategory::parameters, "p");
      require(device.ledger().total() == 1000, "counted");
      require(buffer->bytes() == 1000, "bytes");
      require(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64 == 0, "aligned");
    }
    require(device.ledger().total() == 0, "given back");
    require(c.peers_shared_bytes() == 0, "threads map nothing");
  });
}

namespace {

// Four ranks, of which rank 2 fails: the others learn of it in what they wait for. `use(c, wait_in)`: calls
// wait_in(collective) once all is set up.
template <typename Use>
void require_failure_reaches_all(int ranks_per_node, const Use& use) {
  std::atomic<int> told = 0;
  std::string message;
  try {
    run_ranks_as_threads(4, ranks_per_node, [&](Communicator& c) {
      use(c, [&](const auto& collective) {
        c.barrier();
        if (c.rank() == 2) throw RunError("disk is full");
        try {
          for (;;) collective();
        } catch (const PeerFailed& error) {
          if (error.rank == 2 && std::string(error.what()) == "disk is full") ++told;
          throw;
        }
      });
    });
  } catch (const RunError& error) {
    message = error.what();
  }
  CHECK(message == "disk is full");
  CHECK(told == 3);
}

}  // namespace

TEST_CASE("the failure of one rank ends the waits of all others within a second") {
  for (const int ranks_per_node : {0, 1, 2}) {
    CAPTURE(ranks_per_node);
    const auto start = std::chrono::steady_clock::now();
    require_failure_reaches_all(ranks_per_node,
                                [](Communicator& c, const auto& wait_in) { wait_in([&] { c.barrier(); }); });
    CHECK(seconds_since(start) < 1.0);
  }
}

TEST_CASE("the failure of one rank ends the waits of owners for its blocks") {
  for (const int ranks_per_node : {0, 1, 2}) {
    CAPTURE(ranks_per_node);
    require_failure_reaches_all(ranks_per_node, [](Communicator& c, const auto& wait_in) {
      PlainDevice device;
      const std::vector<std::int64_t> counts(4, 5);
      auto source = c.allocate(device, 4 * 20, MemoryCategory::optimizer, "blocks");
      const Buffer received = device.allocate(4 * 20, MemoryCategory::optimizer, "received");
      wait_in([&] {
        c.all_to_all(device, Stream::reduce, {source.get(), 0, 20}, {counts, true}, received.view(DType::f32));
      });
    });
  }
}

TEST_CASE("blocks that have no place are refused before anything is written") {
  run_ranks_as_threads(2, 0, [](Communicator& c) {
    PlainDevice device;
    auto source = c.allocate(device, 2 * 20, MemoryCategory::optimizer, "blocks");
    const Buffer received = device.allocate(2 * 20, MemoryCategory::optimizer, "received");
    const auto throws = [&](const std::vector<std::int64_t>& counts, const TensorView& to) {
      try {
        c.all_to_all(device, Stream::reduce, {source.get(), 0, 20}, {counts, true}, to);
        return false;
      } catch (const std::logic_error&) {
        return true;
      }
    };
    require(throws({5}, received.view(DType::f32)), "as many counts as ranks");
    require(throws({5, 5}, received.view(DType::f32).part(0, 9)), "room for each block");
    require(throws({5, 5}, {}), "somewhere to write to");
    require(!throws({5, 5}, received.view(DType::f32)), "what is right");
    c.barrier();
  });
}

TEST_CASE("a rank that ends early is noticed by those that wait for it") {
  for (const int ranks_per_node : {0, 1}) {
    CAPTURE(ranks_per_node);
    int lost = -1;
    try {
      run_ranks_as_threads(3, ranks_per_node, [&](Communicator& c) {
        c.barrier();
        if (c.rank() != 1) c.barrier();
      });
    } catch (const PeerFailed& error) {
      lost = error.rank;
    }
    CHECK(lost == 1);
  }
}

TEST_CASE("several worlds of threads live side by side") {
  std::thread other([] { run_ranks_as_threads(2, 1, [](Communicator& c) { check_host_values(c); }); });
  run_ranks_as_threads(3, 0, [](Communicator& c) { check_host_values(c); });
  other.join();
}
