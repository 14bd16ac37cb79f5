// The threads of one rank. Work is cut by shape into tasks; which thread runs a task never matters to a result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace zt::cpu {

class ThreadPool {
 public:
  // threads >= 1, the calling thread included: a pool of 1 starts none. One caller at a time.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls function(task, worker) once for every task in [0, tasks) and returns when all are done; worker is in
  // [0, threads) and no two running tasks have the same. An exception of a task is rethrown here. The calling
  // thread takes part. A single task (or a pool of 1) runs without waking anybody.
  void for_each(std::int64_t tasks, const std::function<void(std::int64_t task, int worker)>& function);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zt::cpu
