// The threads of one rank. Work is cut by shape into tasks; which thread runs a task never matters to a result.
#pragma once

#include <cstdint>
#include <memory>

#include "core/function_ref.h"

namespace zt::cpu {

class ThreadPool {
 public:
  // threads >= 1, the calling thread included: a pool of 1 starts none. One caller at a time. `sharing_cores`: pools
  // like this one that run on the same cores in other processes.
  explicit ThreadPool(int threads, int sharing_cores = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // Whether threads that wait stay awake for a while: every thread can have a core of its own.
  bool may_spin() const;

  // Calls function(task, worker) once for every task in [0, tasks) and returns when all are done; worker is in
  // [0, threads) and no two running tasks have the same. An exception of a task is rethrown here. The calling
  // thread takes part. A single task (or a pool of 1) runs without waking anybody. Nothing is allocated, and as long as
  // nobody sleeps there is no system call.
  //
  // Each worker starts with its own part of the tasks, the same whenever as many are cut from as large a range: so it
  // finds in its cache, and in its node's memory, what it wrote there. Who has done his part takes of the others'.
  void for_each(std::int64_t tasks, FunctionRef<void(std::int64_t task, int worker)> function);

  // Calls function(worker) once on each of the threads, for what belongs to a thread.
  void on_every_thread(FunctionRef<void(int worker)> function);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zt::cpu
