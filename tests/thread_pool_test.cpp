#include "device/cpu/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch_compat.h"

using zt::cpu::ThreadPool;

TEST_CASE("every task runs once") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (const std::int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      pool.for_each(tasks, [&](std::int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
      for (const auto& count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("no two running tasks have the same worker") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};
  pool.for_each(2000, [&](std::int64_t, int worker) {
    if (++inside.at(static_cast<std::size_t>(worker)) != 1) ++clashes;
    --inside.at(static_cast<std::size_t>(worker));
  });
  CHECK(clashes == 0);
}

TEST_CASE("what tasks wrote is seen after for_each, round after round") {
  ThreadPool pool(3);
  std::vector<std::int64_t> values(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool.for_each(64, [&](std::int64_t task, int) { values[static_cast<std::size_t>(task)] += task; });
  }
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == static_cast<std::int64_t>(i) * 2000);
}

TEST_CASE("an exception of a task reaches the caller and the pool works on") {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      CHECK_THROWS_AS(pool.for_each(50,
                                    [](std::int64_t task, int) {
                                      if (task % 10 == 3) throw std::runtime_error("task");
                                    }),
                      std::runtime_error);
    }
    std::atomic<int> done{0};
    pool.for_each(50, [&](std::int64_t, int) { ++done; });
    CHECK(done == 50);
  }
}

TEST_CASE("a single task runs on the calling thread") {
  ThreadPool pool(4);
  std::thread::id where;
  pool.for_each(1, [&](std::int64_t, int worker) {
    where = std::this_thread::get_id();
    CHECK(worker == 0);
  });
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("pools of several ranks work side by side") {
  std::vector<std::thread> ranks;
  std::atomic<std::int64_t> sum{0};
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&sum] {
      ThreadPool pool(2);
      for (int round = 0; round < 200; ++round) pool.for_each(10, [&](std::int64_t task, int) { sum += task; });
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(sum == 4 * 200 * 45);
}

TEST_CASE("a pool needs a thread") { CHECK_THROWS_AS(ThreadPool(0), std::invalid_argument); }
