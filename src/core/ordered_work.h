// Work in parts on several threads, whose results are taken in the order of the parts.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace zt {

// next() gives the parts one after the other, an optional that is empty at the end; work(part) makes a result of each,
// on `threads` threads; take(result) gets them in order, on the thread of the caller. next() and work() never run for a
// part that is far ahead of what was taken. The first exception in the order of the parts is thrown again here.
template <typename Next, typename Work, typename Take>
void work_in_order(int threads, Next&& next, Work&& work, Take&& take) {
  using Part = typename std::invoke_result_t<Next&>::value_type;
  using Result = std::invoke_result_t<Work&, const Part&>;
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::size_t, Outcome> done;
  std::size_t given = 0, taken = 0;
  bool at_end = false;
  const std::size_t most_ahead = 3 * static_cast<std::size_t>(threads);

  const auto run = [&] {
    for (;;) {
      std::size_t index = 0;
      std::optional<Part> part;
      Outcome outcome;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return at_end || given < taken + most_ahead; });
        if (at_end) return;
        index = given++;
        try {
          part = next();
        } catch (...) {
          outcome.error = std::current_exception();
        }
        if (!part) {
          at_end = true;
          if (outcome.error == nullptr) --given;
        }
      }
      if (part) {
        try {
          outcome.result.emplace(work(*part));
        } catch (...) {
          outcome.error = std::current_exception();
        }
      }
      const std::lock_guard lock(mutex);
      if (part || outcome.error) done.emplace(index, std::move(outcome));
      changed.notify_all();
      if (!part) return;
    }
  };
  std::vector<std::thread> workers;
  const auto join = [&] {
    {
      const std::lock_guard lock(mutex);
      at_end = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  };
  try {
    for (int i = 0; i < threads; ++i) workers.emplace_back(run);
    for (;;) {
      Outcome outcome;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done.contains(taken) || (at_end && taken == given); });
        if (!done.contains(taken)) break;
        outcome = std::move(done.at(taken));
        done.erase(taken);
        ++taken;
      }
      changed.notify_all();
      if (outcome.error) std::rethrow_exception(outcome.error);
      take(*outcome.result);
    }
  } catch (...) {
    join();
    throw;
  }
  join();
}

}  // namespace zt
